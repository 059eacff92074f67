"""FGM and PGD: the algebra of the perturbation, exact restoration, clean + adversarial gradient."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor, nn
from torch.nn import functional

from src.config import AdversarialConfig, MemberConfig
from src.data.pairs import read_pairs
from src.models.registry import build_model, read_pairs_for
from src.training.adversarial import Perturbation, accumulate_gradient

SHAPE = (6, 3)
GRADIENTS = arrays(np.float32, SHAPE, elements=st.floats(-100, 100, width=32))
ANY_FLOATS = arrays(np.float32, SHAPE, elements=st.floats(width=32))
ANY_BITS = arrays(np.int32, SHAPE)  # every float32 there is: -0.0, subnormals, NaN payloads


def table(values: np.ndarray | None = None) -> nn.Embedding:
    """An embedding of the given rows; zeros, so that what is read off is the movement itself."""
    values = np.zeros(SHAPE, np.float32) if values is None else values
    return nn.Embedding.from_pretrained(torch.from_numpy(values.copy()), freeze=False)


def bits(weight: Tensor) -> np.ndarray:
    return weight.detach().numpy().view(np.int32).copy()


def movement(embedding: nn.Embedding) -> np.ndarray:
    """How far a table of zeros has moved."""
    return embedding.weight.detach().numpy().astype(np.float64)  # a copy


def expected_path(gradients: list[np.ndarray], step: float, epsilon: float) -> np.ndarray:
    """PGD as the paper writes it, in float64."""
    delta = np.zeros(SHAPE)
    for gradient in gradients:
        gradient = gradient.astype(np.float64)
        delta = delta + step * gradient / np.linalg.norm(gradient)
        delta *= epsilon / max(epsilon, np.linalg.norm(delta))
    return delta


# The perturbation ---------------------------------------------------------------------------------


@given(GRADIENTS.filter(lambda g: np.linalg.norm(g) > 1e-3), st.floats(0.01, 10))
def test_fgm_moves_epsilon_along_the_gradient(gradient, epsilon):
    embedding = table()
    with Perturbation(embedding, epsilon) as attack:
        attack.move(torch.from_numpy(gradient), epsilon)
        moved = movement(embedding)
    assert np.linalg.norm(moved) == pytest.approx(epsilon, rel=1e-5)
    direction = gradient / np.linalg.norm(gradient.astype(np.float64))
    np.testing.assert_allclose(moved, epsilon * direction, atol=1e-5 * epsilon)


def test_the_norm_is_one_over_all_rows_together():
    embedding, gradient = table(), torch.zeros(SHAPE)
    gradient[1, 0], gradient[4, 2] = 3.0, -4.0
    with Perturbation(embedding, 10.0) as attack:
        attack.move(gradient, 10.0)
        assert embedding.weight[1, 0].item() == pytest.approx(6.0)
        assert embedding.weight[4, 2].item() == pytest.approx(-8.0)


@given(st.lists(ANY_FLOATS, min_size=1, max_size=5), st.floats(0.01, 5), st.floats(0.01, 5))
def test_pgd_never_leaves_the_ball(gradients, step, epsilon):
    embedding = table()
    with Perturbation(embedding, epsilon) as attack:
        for gradient in gradients:
            attack.move(torch.from_numpy(gradient), step)
            assert np.linalg.norm(movement(embedding)) <= epsilon * (1 + 1e-5)  # NaN fails too


# The first gradient decides the rows (a batch has the same words in every step): none is zero here.
FULL = arrays(np.float32, SHAPE, elements=st.floats(0.5, 100, width=32))


@given(st.lists(FULL, min_size=1, max_size=4), st.floats(0.01, 1), st.floats(0.01, 2))
def test_pgd_follows_the_paper(gradients, step, epsilon):
    gradients = [gradient * (-1) ** index for index, gradient in enumerate(gradients)]
    embedding = table()
    with Perturbation(embedding, epsilon) as attack:
        for gradient in gradients:
            attack.move(torch.from_numpy(gradient), step)
        moved = movement(embedding)
    np.testing.assert_allclose(moved, expected_path(gradients, step, epsilon), atol=1e-5)


@given(st.lists(FULL, min_size=1, max_size=4), st.floats(0.01, 1))
def test_inside_the_ball_nothing_is_projected(gradients, step):
    embedding = table()
    with Perturbation(embedding, step * len(gradients) * 1.01) as attack:
        for gradient in gradients:
            attack.move(torch.from_numpy(gradient), step)
        moved = movement(embedding)
    units = [g / np.linalg.norm(g.astype(np.float64)) for g in gradients]
    np.testing.assert_allclose(moved, step * np.sum(units, axis=0), atol=1e-5)


def test_outside_the_ball_the_step_ends_on_its_surface():
    embedding, gradient = table(), torch.ones(SHAPE)
    with Perturbation(embedding, 1.0) as attack:
        attack.move(gradient, 3.0)
        assert embedding.weight.norm().item() == pytest.approx(1.0)


@given(ANY_BITS, st.lists(ANY_FLOATS, max_size=3), st.booleans())
def test_leaving_restores_every_bit(before, gradients, raises):
    embedding = table(before.view(np.float32))
    try:
        with Perturbation(embedding, 1.0) as attack:
            for gradient in gradients:
                attack.move(torch.from_numpy(gradient), 0.7)
            if raises:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        assert raises
    assert np.array_equal(bits(embedding.weight), before)


def test_an_error_in_the_block_is_not_swallowed():
    embedding = table(np.full(SHAPE, 0.1, np.float32))
    with pytest.raises(RuntimeError, match="out of memory"):
        with Perturbation(embedding, 1.0) as attack:
            attack.move(torch.ones(SHAPE), 1.0)
            assert not torch.allclose(embedding.weight, torch.tensor(0.1))
            raise RuntimeError("out of memory")
    assert torch.equal(embedding.weight, torch.full(SHAPE, 0.1))


def test_a_perturbation_can_be_entered_again():
    embedding = table()
    attack = Perturbation(embedding, 1.0)
    for row in (0, 3):
        gradient = torch.zeros(SHAPE)
        gradient[row] = 1.0
        with attack:
            attack.move(gradient, 1.0)
            assert embedding.weight.abs().sum(1).nonzero().flatten().tolist() == [row]
        assert not embedding.weight.any()


def test_rows_without_gradient_are_never_written():
    """What somebody else writes there meanwhile survives every step, and the end."""
    embedding = table(np.full(SHAPE, 0.1, np.float32))
    gradient = torch.zeros(SHAPE)
    gradient[2] = 1.0
    with Perturbation(embedding, 1.0) as attack:
        attack.move(gradient, 0.5)
        with torch.no_grad():
            embedding.weight[[0, 1, 3, 4, 5]] = 7.0
        attack.move(gradient, 0.5)
        assert (embedding.weight[[0, 1, 3, 4, 5]] == 7.0).all()
        assert (embedding.weight[2] > 0.2).all()
    assert (embedding.weight[[0, 1, 3, 4, 5]] == 7.0).all()
    assert (embedding.weight[2] == 0.1).all()


def spoilt(value: float) -> Tensor:
    gradient = torch.ones(SHAPE)
    gradient[1, 1] = value
    return gradient


NOTHING = {
    "absent": None,
    "zero": torch.zeros(SHAPE),
    "nan": spoilt(float("nan")),
    "inf": spoilt(float("inf")),
}


@pytest.mark.parametrize("gradient", NOTHING.values(), ids=NOTHING)
def test_a_gradient_without_direction_moves_nothing(gradient):
    values = np.random.default_rng(0).normal(size=SHAPE).astype(np.float32)
    embedding = table(values)
    with Perturbation(embedding, 1.0) as attack:
        attack.move(gradient, 1.0)
        assert np.array_equal(bits(embedding.weight), values.view(np.int32))


@pytest.mark.parametrize("gradient", NOTHING.values(), ids=NOTHING)
def test_a_later_gradient_without_direction_keeps_the_place(gradient):
    embedding = table()
    with Perturbation(embedding, 1.0) as attack:
        attack.move(torch.ones(SHAPE), 0.5)
        before = bits(embedding.weight)
        attack.move(gradient, 0.5)
        assert before.any() and np.array_equal(bits(embedding.weight), before)


# The gradient of a batch --------------------------------------------------------------------------

ATTACKS = {
    "none": AdversarialConfig(method="none"),
    "fgm": AdversarialConfig(method="fgm", epsilon=4.5),
    "pgd": AdversarialConfig(method="pgd", epsilon=4.5, steps=3),
}


class Batches:
    """A tiny network without dropout, and loss functions of its batches."""

    def __init__(self, architecture: str, pretrained: Path, sample: Path) -> None:
        settings = {"epochs": 1, "dropout": 0.0}
        member = MemberConfig(architecture=architecture, encoder="tiny", training=settings)
        self.model, tokenizer = build_model(member, pretrained, seed=1)
        self.frame = read_pairs(sample / "train.csv", labelled=True).frame.iloc[::40]
        self.pairs = read_pairs_for(member, self.frame.reset_index(drop=True), tokenizer)
        self.accelerator = Accelerator(mixed_precision="no")
        self.model.to(self.accelerator.device).train()

    @property
    def embedding(self) -> nn.Embedding:
        return self.model.encoder.word_embeddings

    def loss(self, start: int, bf16: bool = False):
        """The loss of the eight pairs from row `start` on, as a function of the network."""
        rows = np.arange(start, start + 8)
        inputs = self.pairs.collate(rows, rows % 2 == 0).to(self.accelerator.device)
        goals = torch.tensor(self.frame["label"].to_numpy()[rows], dtype=torch.float32)

        def compute(network: nn.Module) -> Tensor:
            with torch.autocast(inputs_device, torch.bfloat16, enabled=bf16):
                logits = network(inputs).logits
            return functional.binary_cross_entropy_with_logits(logits.float(), goals)

        goals = goals.to(self.accelerator.device)
        inputs_device = self.accelerator.device.type
        return compute

    def accumulate(self, compute, attack: str) -> Tensor:
        return accumulate_gradient(
            compute, self.model, self.embedding, ATTACKS[attack], self.accelerator
        )

    def gradients(self) -> dict[str, Tensor]:
        return {n: p.grad for n, p in self.model.named_parameters() if p.grad is not None}


@pytest.fixture(params=["siamese", "cross"])
def batches(request, pretrained: Path, sample: Path) -> Batches:
    return Batches(request.param, pretrained, sample)


@pytest.fixture
def siamese(pretrained: Path, sample: Path) -> Batches:
    return Batches("siamese", pretrained, sample)


def reference(model: nn.Module, compute, attack: str) -> dict[str, Tensor]:
    """Clean + adversarial gradient, plainly: on a copy, with a whole backward pass a step."""
    settings = ATTACKS[attack]
    twin = copy.deepcopy(model)
    weight = twin.encoder.word_embeddings.weight

    def whole() -> dict[str, Tensor]:
        twin.zero_grad()
        compute(twin).backward()
        return {n: p.grad.clone() for n, p in twin.named_parameters() if p.grad is not None}

    clean = latest = whole()
    if attack == "none":
        return clean
    name = next(n for n, p in twin.named_parameters() if p is weight)
    start, delta = weight.detach().clone(), torch.zeros_like(weight)
    used = weight.detach()[clean[name].abs().sum(1) > 0]
    radius = settings.epsilon * used.norm(dim=1).mean()
    steps = 1 if attack == "fgm" else settings.steps
    size = radius if attack == "fgm" else 2.5 * radius / steps
    for _ in range(steps):
        delta = delta + size * latest[name] / latest[name].norm()
        if delta.norm() > radius:
            delta = delta * radius / delta.norm()
        weight.data = start + delta
        latest = whole()
    return {n: clean[n] + latest[n] for n in clean}


def assert_equal(found: dict[str, Tensor], expected: dict[str, Tensor], rtol: float = 1e-3):
    assert found.keys() == expected.keys()
    largest = max(values.abs().max().item() for values in expected.values())
    for name, values in expected.items():
        torch.testing.assert_close(found[name], values, rtol=rtol, atol=rtol * largest * 0.01)


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_gradient_is_clean_plus_adversarial(batches: Batches, attack):
    compute = batches.loss(0)
    expected, before = reference(batches.model, compute, attack), bits(batches.embedding.weight)
    loss = batches.accumulate(compute, attack)
    assert_equal(batches.gradients(), expected)
    assert np.array_equal(bits(batches.embedding.weight), before)
    assert not loss.requires_grad and loss.item() == pytest.approx(
        compute(batches.model).item(), rel=1e-6
    )


@pytest.mark.parametrize("attack", ["fgm", "pgd"])
def test_the_attack_matters(siamese: Batches, attack):
    """Else the tests above could not tell an attack from a second clean pass."""
    compute = siamese.loss(0)
    clean, both = (reference(siamese.model, compute, name) for name in ("none", attack))
    with pytest.raises(AssertionError):
        assert_equal(both, {name: 2 * values for name, values in clean.items()}, rtol=0.05)


@pytest.mark.parametrize("attack", ATTACKS)
def test_gradients_of_micro_batches_add_up(batches: Batches, attack):
    """Each micro-batch is attacked along its own gradient, not along the sum so far."""
    first, second = batches.loss(0), batches.loss(8)
    expected = [reference(batches.model, compute, attack) for compute in (first, second)]
    batches.accumulate(first, attack)
    batches.accumulate(second, attack)
    assert_equal(batches.gradients(), {n: expected[0][n] + expected[1][n] for n in expected[0]})


@pytest.mark.parametrize("attack", ["fgm", "pgd"])
def test_under_bfloat16_autocast(batches: Batches, attack):
    compute = batches.loss(0, bf16=True)
    before = bits(batches.embedding.weight)
    expected = reference(batches.model, compute, attack)
    exact = reference(batches.model, batches.loss(0), attack)
    batches.accumulate(compute, attack)
    found = batches.gradients()
    assert_equal(found, expected, rtol=1e-3)
    assert all(values.dtype == torch.float32 for values in found.values())
    joined = [torch.cat([g[n].flatten() for n in exact]) for g in (found, exact)]
    assert torch.cosine_similarity(*joined, dim=0) > 0.99
    assert np.array_equal(bits(batches.embedding.weight), before)


@pytest.mark.parametrize("attack", ["fgm", "pgd"])
def test_a_frozen_table_is_not_attacked(siamese: Batches, attack):
    """There is no direction to move along: both passes are clean ones."""
    siamese.embedding.weight.requires_grad_(False)
    compute, before = siamese.loss(0), bits(siamese.embedding.weight)
    clean = reference(siamese.model, compute, "none")
    siamese.accumulate(compute, attack)
    assert_equal(siamese.gradients(), {name: 2 * values for name, values in clean.items()})
    assert siamese.embedding.weight.grad is None
    assert np.array_equal(bits(siamese.embedding.weight), before)


@pytest.mark.parametrize("attack", ["fgm", "pgd"])
def test_parameters_without_gradient_stay_without(siamese: Batches, attack):
    siamese.model.unused = nn.Parameter(torch.ones(2))
    frozen = siamese.model.encoder.layers[0].output.dense.weight.requires_grad_(False)
    compute = siamese.loss(0)
    expected = reference(siamese.model, compute, attack)
    siamese.accumulate(compute, attack)
    assert_equal(siamese.gradients(), expected)
    assert siamese.model.unused.grad is None and frozen.grad is None


@pytest.mark.parametrize(("attack", "fatal"), [("fgm", 2), ("pgd", 2), ("pgd", 4)])
def test_the_table_is_restored_when_a_pass_fails(siamese: Batches, attack, fatal):
    compute, before = siamese.loss(0), bits(siamese.embedding.weight)
    calls = []

    def failing(network: nn.Module) -> Tensor:
        calls.append(bits(siamese.embedding.weight))
        if len(calls) == fatal:
            raise RuntimeError("out of memory")
        return compute(network)

    with pytest.raises(RuntimeError, match="out of memory"):
        siamese.accumulate(failing, attack)
    assert not np.array_equal(calls[-1], before)  # it failed under attack
    assert np.array_equal(bits(siamese.embedding.weight), before)


def test_pgd_costs_one_pass_a_step_and_the_clean_one(siamese: Batches):
    compute, calls = siamese.loss(0), []
    siamese.accumulate(lambda network: calls.append(1) or compute(network), "pgd")
    assert len(calls) == 1 + ATTACKS["pgd"].steps


# The control --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["noise", "fgm"])
def test_the_radius_is_in_lengths_of_the_words_of_the_batch(method):
    """Noise moves the same rows as far as FGM does, but in another direction."""
    lengths = np.array([1, 50, 2, 50, 50, 6], np.float32)  # of the words; three are not in it
    embedding = table(lengths[:, None] * np.float32([[0.6, 0, 0.8]]))
    used = torch.tensor([0, 2, 5])
    seen = []

    def compute_loss(network: nn.Module) -> Tensor:
        seen.append(embedding.weight.detach().clone())
        return network(used).sum()

    torch.manual_seed(0)
    settings = AdversarialConfig(method=method, epsilon=0.7)
    accumulate_gradient(compute_loss, embedding, embedding, settings, Accelerator())
    clean, moved = seen[0], seen[1] - seen[0]
    assert moved.norm().item() == pytest.approx(0.7 * 3, rel=1e-5)
    assert moved[[1, 3, 4]].abs().sum() == 0 and (moved[used] != 0).all()
    along_the_gradient = torch.allclose(moved[used], torch.full((3, 3), 0.7), atol=1e-3)
    assert along_the_gradient == (method == "fgm")
    assert torch.equal(embedding.weight, clean)


@pytest.mark.parametrize("steps", [2, 3, 7])
def test_pgd_reaches_the_edge_of_the_ball(steps: int):
    """Its steps together are longer than the radius, so that the projection acts."""
    embedding, seen = table(np.full(SHAPE, 3**-0.5, np.float32)), []

    def compute_loss(network: nn.Module) -> Tensor:
        seen.append(embedding.weight.detach().clone())
        return network(torch.arange(len(embedding.weight))).sum()

    settings = AdversarialConfig(method="pgd", epsilon=0.5, steps=steps)
    accumulate_gradient(compute_loss, embedding, embedding, settings, Accelerator())
    lengths = [(weight - seen[0]).norm().item() for weight in seen]
    path = np.minimum(np.arange(steps + 1) * 2.5 / steps, 1) * 0.5
    assert lengths == pytest.approx(path, rel=1e-4)
