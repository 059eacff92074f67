"""Training: optimiser, checkpoints, accumulation, epochs, refusals, and that it learns."""

import pickle
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from accelerate import PartialState
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from tiny_run import fold_files
from torch import nn

from src.config import MemberConfig
from src.data.pairs import read_pairs
from src.errors import UserError
from src.files import read_json
from src.models.ngram import NgramEncoder
from src.models.precision import autocast
from src.models.registry import build_model, read_pairs_for
from src.training import fold_model
from src.training.checkpoint import load_checkpoint, round_moments, save_checkpoint
from src.training.fold_model import (
    FoldModel,
    fit,
    fold_seed,
    load_fold_model,
    read_member,
    train_fold_model,
)
from src.training.learned import has_learned
from src.training.loop import Conduct, LabelledPairs, TrainingFailed, log_loss, train
from src.training.objective import Objective
from src.training.optimizer import linear_schedule, make_optimizer, parameter_groups

FGM = {"method": "fgm", "epsilon": 2.7}
FAST = {"batch_pairs": 8, "encoder_lr": 5e-3, "head_lr": 5e-3}  # learns within an epoch
NO_SCALER = torch.amp.GradScaler("cpu", enabled=False)
PGD = {"method": "pgd", "epsilon": 2.7, "steps": 2}


def member_config(architecture: str = "siamese", **changes) -> MemberConfig:
    """A member with the tiny encoder, without dropout unless asked."""
    training = {
        "epochs": 1,
        "batch_pairs": 16,
        "encoder_lr": 1e-3,
        "head_lr": 2e-3,
        "dropout": 0.0,
        "precision": "fp32",
    }
    return MemberConfig(architecture=architecture, encoder="tiny", training=training | changes)


class WatchedPairs:
    """Pairs that note what is read of them, and interrupt the run some batches after a file."""

    def __init__(self, pairs, trigger: Path | None = None, batches_left: int = 2) -> None:
        self.pairs, self.groups, self.lengths = pairs, pairs.groups, pairs.lengths
        self.trigger, self.batches_left = trigger, batches_left
        self.read: list[tuple[list[int], list[bool]]] = []

    def __len__(self) -> int:
        return len(self.pairs)

    def collate(self, rows: np.ndarray, reversed_rows: np.ndarray):
        if self.trigger is not None and self.trigger.is_file():
            self.batches_left -= 1
            if self.batches_left < 0:
                raise KeyboardInterrupt
        self.read.append((rows.tolist(), reversed_rows.tolist()))
        return self.pairs.collate(rows, reversed_rows)


@dataclass
class Task:
    """Sample pairs to train on and to score."""

    training: pd.DataFrame
    valid: pd.DataFrame
    pretrained: Path
    folder: Path

    def network(self, member: MemberConfig, seed: int = 1):
        model, self.tokenizer = build_model(member, self.pretrained, seed)
        return model

    def train(
        self,
        member: MemberConfig,
        model: nn.Module,
        *,
        seed: int = 5,
        swap: float = 0.0,
        checkpoint: str = "checkpoint.safetensors",
        interrupted: bool = False,
        valid_labels: np.ndarray | None = None,
        **conduct: Callable,
    ) -> list[dict[str, float]]:
        """Train `model` in place; what was read is kept in `watched`."""
        file = self.folder / checkpoint
        pairs = read_pairs_for(member, self.training, self.tokenizer)
        self.watched = WatchedPairs(pairs, file if interrupted else None)
        if valid_labels is None:
            valid_labels = self.valid["label"].to_numpy()
        model.precision = member.training.precision
        history, _ = train(
            model,
            LabelledPairs(self.watched, self.training["label"].to_numpy()),
            LabelledPairs(read_pairs_for(member, self.valid, self.tokenizer), valid_labels),
            member.training,
            Objective.of(member),
            Conduct("tiny fold 0", seed, swap, file, **conduct),
        )
        return history

    def fresh(self, member: MemberConfig, **arguments):
        """A new network and the history of its training."""
        model = self.network(member)
        return model, self.train(member, model, **arguments)


@pytest.fixture
def task(pretrained: Path, sample: Path, tmp_path: Path) -> Task:
    training = read_pairs(sample / "train.csv", labelled=True).frame.iloc[:192]
    # Pairs that it trains on, so that the validation loss falls, or rises if labels are inverted.
    valid = training.iloc[::3].reset_index(drop=True)
    return Task(training, valid, pretrained, tmp_path)


def state_of(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: values.detach().clone() for name, values in model.state_dict().items()}


def assert_same_bits(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def distance(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    """Euclidean, over all weights but the key biases.

    Softmax does not see a key bias: its gradient is rounding, which Adam makes as large as any.
    """
    names = [name for name in one if not name.endswith("key.bias")]
    return torch.cat([(one[n] - other[n]).flatten() for n in names]).norm().item()


# Optimiser ----------------------------------------------------------------------------------------


def test_every_parameter_has_its_learning_rate_and_decay(task: Task):
    member = member_config(layer_decay=0.5, weight_decay=0.1)
    model = task.network(member)
    groups = parameter_groups(model, member.training)
    found = {
        id(p): (group["lr"], group["weight_decay"]) for group in groups for p in group["params"]
    }
    assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))
    rates = {"head.": 2e-3, ".layer.1.": 1e-3, ".layer.0.": 5e-4, ".embeddings.": 2.5e-4}
    for name, parameter in model.named_parameters():
        (rate,) = [rate for part, rate in rates.items() if part in name]
        plain = name.endswith("bias") or "LayerNorm" in name
        assert found[id(parameter)] == (pytest.approx(rate), 0.0 if plain else 0.1), name


def test_frozen_parameters_are_not_optimised(task: Task):
    member = member_config()
    model = task.network(member)
    frozen = model.encoder.word_embeddings.weight.requires_grad_(False)
    optimizer = make_optimizer(model, member.training)
    chosen = [p for group in optimizer.param_groups for p in group["params"]]
    assert len(chosen) == len(list(model.parameters())) - 1
    assert all(p is not frozen for p in chosen)


def test_a_frozen_table_survives_training_with_an_attack(task: Task):
    member = member_config(adversarial=FGM)
    model = task.network(member)
    model.encoder.word_embeddings.weight.requires_grad_(False)
    before = state_of(model)
    task.train(member, model)
    after = state_of(model)
    (table,) = [name for name in before if name.endswith("word_embeddings.weight")]
    assert torch.equal(before[table], after[table]) and distance(before, after) > 0.1


def factor(step: int, steps: int, warmup: float) -> float:
    """Up from 0 over the first `warmup` share of the steps, down to 0; no step is taken at 0."""
    rising = max(1, round(warmup * steps))
    if step < rising:
        return (step + 1) / (rising + 1)
    return max(0.0, (steps - step) / max(1, steps - rising))


def factors_of(steps: int, warmup: float, begin: int = 0) -> list[float]:
    """What the schedule makes of a rate of 1, from a step on."""
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = linear_schedule(optimizer, begin, steps, warmup)
    rates = []
    for _ in range(begin, steps + 1):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return rates


@given(st.integers(1, 60), st.floats(0, 0.99), st.data())
def test_the_schedule_is_the_formula_wherever_it_is_entered(steps, warmup, data):
    begin = data.draw(st.integers(0, steps - 1))
    expected = [factor(step, steps, warmup) for step in range(begin, steps + 1)]
    assert factors_of(steps, warmup, begin) == expected


def test_learning_rate_rises_then_falls_to_zero():
    factors = factors_of(100, 0.1)
    assert factors[0] == pytest.approx(1 / 11) and factors[9] == pytest.approx(10 / 11)
    assert factors[10] == 1.0 and factors[55] == pytest.approx(0.5)
    assert factors[99] == pytest.approx(1 / 90) and factors[100] == 0.0


@given(st.integers(1, 100), st.floats(0, 0.99))
def test_learning_rate_has_one_peak_and_is_never_zero_or_above_one(steps, warmup):
    factors = np.array(factors_of(steps, warmup)[:-1])
    assert (factors > 0).all() and (factors <= 1).all()
    peak = factors.argmax()
    assert (np.diff(factors[: peak + 1]) > 0).all() and (np.diff(factors[peak:]) < 0).all()
    assert abs(peak - warmup * steps) <= 1.5


def test_the_loop_follows_the_schedule(task: Task, monkeypatch: pytest.MonkeyPatch):
    """Rates at every step of two epochs; the head's is twice the encoder's throughout."""
    rates, step = [], torch.optim.AdamW.step

    def noting(optimizer, *arguments, **named):
        rates.append({group["lr"] for group in optimizer.param_groups})
        return step(optimizer, *arguments, **named)

    monkeypatch.setattr(torch.optim.AdamW, "step", noting)
    task.fresh(member_config("cross", epochs=2, warmup=0.25, accumulation=2))
    assert len(rates) == 12  # 192 pairs in batches of 16, two at a time, twice
    expected = [factor(number, 12, 0.25) for number in range(12)]
    assert [max(r) for r in rates] == pytest.approx([2e-3 * factor for factor in expected])
    assert [min(r) for r in rates] == pytest.approx([1e-3 * factor for factor in expected])


# Checkpoints --------------------------------------------------------------------------------------


@pytest.mark.parametrize("extra", [{}, {"accumulation": 2}, {"precision": "fp16"}])
def test_a_killed_run_continues_to_the_same_bits(
    task: Task, extra: dict, monkeypatch: pytest.MonkeyPatch
):
    """Dropout, attack and schedule included; and no pickle is written or read on the way."""
    member = member_config(epochs=3, dropout=0.1, adversarial=FGM, warmup=0.3, **FAST | extra)
    whole, history = task.fresh(member)

    def forbidden(*_, **__):
        raise AssertionError("pickle")

    for module, name in [
        (torch, "save"),
        (torch, "load"),
        (pickle, "dump"),
        (pickle, "dumps"),
        (pickle, "load"),
        (pickle, "loads"),
    ]:
        monkeypatch.setattr(module, name, forbidden)
    arguments = {"checkpoint": "second.safetensors"}
    with pytest.raises(KeyboardInterrupt):
        task.fresh(member, interrupted=True, **arguments)
    continued = task.network(member, seed=99)  # all that counts is in the checkpoint
    batches_of_an_epoch = len(task.watched.read)
    assert task.train(member, continued, **arguments) == history
    assert batches_of_an_epoch < len(task.watched.read) < 3 * batches_of_an_epoch
    assert_same_bits(state_of(continued), state_of(whole))


@pytest.mark.parametrize("attack", [{"method": "none"}, FGM | {"epsilon": 0.45}, PGD])
@pytest.mark.parametrize("architecture", ["siamese", "cross"])
def test_half_precision_trains_what_full_precision_trains(task: Task, architecture, attack):
    """Up to rounding: fp16 has three digits, and the scaled loss gives its gradient back."""
    losses = {}
    for precision in ("fp32", "fp16"):
        member = member_config(architecture, precision=precision, adversarial=attack)
        _, history = task.fresh(member)
        losses[precision] = [history[0]["train_loss"], history[0]["valid_loss"]]
    assert history[0]["skipped_steps"] == 0
    assert losses["fp16"] == pytest.approx(losses["fp32"], abs=5e-3)
    assert losses["fp16"] != losses["fp32"], "nothing was computed in fp16"


def test_a_step_that_overflows_is_skipped_and_counted(task: Task, monkeypatch):
    scaler = partial(torch.amp.GradScaler, init_scale=2.0**30)
    monkeypatch.setattr(torch.amp, "GradScaler", scaler)
    network, history = task.fresh(member_config(precision="fp16", **FAST))
    assert 0 < history[0]["skipped_steps"] < 20
    assert all(values.isfinite().all() for values in network.state_dict().values())


@pytest.mark.usefixtures("one_attempt")
@pytest.mark.parametrize("failures", [1, 2])
def test_out_of_memory_halves_the_batch_once(task: Task, monkeypatch, capsys, failures: int):
    """The steps of the optimizer stay the same, and the weights' settings say what was done."""
    tried = []

    def short_of_memory(network, *arguments):
        tried.append((network.member.training.batch_pairs, network.member.training.accumulation))
        if len(tried) <= failures:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return fit(network, *arguments)

    monkeypatch.setattr(fold_model, "fit", short_of_memory)
    files = fold_files(task.folder, task.training, task.valid)
    folder = task.folder / "model"
    folder.mkdir()
    arguments = member_config(), files, 0.0, task.pretrained, None, folder
    if failures == 2:
        with pytest.raises(UserError, match="gradient_checkpointing=true"):
            train_fold_model(*arguments)
    else:
        train_fold_model(*arguments)
        assert read_member(folder).training.batch_pairs == 8
    assert tried == [(16, 1), (8, 2)]
    assert "out of memory with 16 pairs a batch × 1" in capsys.readouterr().err


def test_without_a_checkpoint_there_is_nothing_to_continue(task: Task):
    member = member_config()
    model = task.network(member)
    optimizer = make_optimizer(model, member.training)
    assert load_checkpoint(task.folder / "absent.safetensors", model, optimizer, NO_SCALER) is None


def test_a_checkpoint_gives_back_the_whole_state(task: Task):
    member, file = member_config(), task.folder / "state.safetensors"
    model = task.network(member)
    optimizer = make_optimizer(model, member.training)
    generator = torch.Generator().manual_seed(0)
    for _ in range(2):
        for parameter in model.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        optimizer.step()
    history = [{"epoch": 1, "valid_loss": 0.1 + 0.2}]
    round_moments(optimizer)
    save_checkpoint(file, model, optimizer, NO_SCALER, history)
    weights = sum(values.nbytes for values in model.state_dict().values())
    assert file.stat().st_size < 2.1 * weights, "a checkpoint has to stay small"

    other = task.network(member, seed=2)
    other_optimizer = make_optimizer(other, member.training)
    assert load_checkpoint(file, other, other_optimizer, NO_SCALER) == history
    assert_same_bits(state_of(other), state_of(model))
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        one, two = optimizer.state[mine], other_optimizer.state[theirs]
        assert set(one) == set(two) == {"step", "exp_avg", "exp_avg_sq"}
        assert all(torch.equal(one[key], two[key]) for key in one)


# One step from several batches, or with less memory -----------------------------------------------


def test_two_half_batches_make_one_batch(task: Task, monkeypatch: pytest.MonkeyPatch):
    """The same gradient at every step, and so the same weights; each step sees all 32 pairs."""
    task.training = task.training.iloc[:32]
    gradients, step = [], torch.optim.AdamW.step

    def noting(optimizer, *arguments, **named):
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        gradients.append(torch.cat([p.grad.flatten() for p in parameters]))
        return step(optimizer, *arguments, **named)

    monkeypatch.setattr(torch.optim.AdamW, "step", noting)
    start, ends, losses = state_of(task.network(member_config("cross"))), [], []
    for name, changes in {"whole": {"batch_pairs": 32}, "halves": {"accumulation": 2}}.items():
        model, history = task.fresh(
            member_config("cross", epochs=4, clip_norm=1e3, **changes), checkpoint=name
        )
        ends.append(state_of(model))
        losses.append([row["train_loss"] for row in history])
    assert len(gradients) == 8
    for whole, halves in zip(gradients[:4], gradients[4:], strict=True):
        assert (whole - halves).norm() < 1e-4 * whole.norm()
    assert distance(*ends) < 1e-3 * distance(ends[0], start)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_the_last_batches_of_an_epoch_count_though_they_are_fewer(task: Task):
    """12 batches, five at a time: the step after the 12th uses the two that are left."""
    calls = []
    step = torch.optim.AdamW.step
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", lambda o, *a, **k: calls.append(1) or step(o))
        task.fresh(member_config("cross", accumulation=5))
    assert len(calls) == 3


@pytest.mark.parametrize("adversarial", [{"method": "none"}, PGD], ids=["clean", "pgd"])
def test_gradient_checkpointing_changes_memory_not_weights(task: Task, adversarial):
    ends, calls = [], []
    for on in (False, True):
        member = member_config(gradient_checkpointing=on, adversarial=adversarial, dropout=0.1)
        model = task.network(member)
        passes: list[int] = []
        model.encoder.layers[0].attention.register_forward_hook(
            lambda module, *_, passes=passes: passes.append(1) if module.training else None
        )
        task.train(member, model, checkpoint=f"{on}")
        ends.append(state_of(model))
        calls.append(len(passes))
    assert calls[1] > 1.5 * calls[0]  # activations were computed a second time
    for name, values in ends[0].items():
        torch.testing.assert_close(ends[1][name], values, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("architecture", ["siamese", "cross"])
def test_training_in_bfloat16_learns_about_the_same(task: Task, architecture):
    losses = [
        task.fresh(member_config(architecture, precision=precision), checkpoint=precision)[1]
        for precision in ("fp32", "bf16")
    ]
    exact, rounded = (history[0]["train_loss"] for history in losses)
    assert exact != rounded and exact == pytest.approx(rounded, rel=0.02)


def test_precision_chooses_the_matrix_product():
    matrix, cpu = torch.ones(2, 2), torch.device("cpu")
    for precision, expected in {"fp32": torch.float32, "bf16": torch.bfloat16}.items():
        with autocast(cpu, precision):
            assert (matrix @ matrix).dtype == expected
    with autocast(cpu, "auto"):
        assert (matrix @ matrix).dtype in (torch.float32, torch.bfloat16)


# Loss, seeds and the epoch that is kept -----------------------------------------------------------


@pytest.mark.parametrize(("smoothing", "accumulation"), [(0.0, 1), (0.1, 1), (0.1, 3)])
def test_train_loss_is_the_mean_over_pairs_with_smoothed_labels(
    task: Task, smoothing, accumulation
):
    """Read off a network that stands still: its logits before training give the loss."""
    member = member_config(
        encoder_lr=1e-12, head_lr=1e-12, label_smoothing=smoothing, accumulation=accumulation
    )
    model = task.network(member)
    logits = model.predict(read_pairs_for(member, task.training, task.tokenizer))
    goals = task.training["label"].to_numpy() * (1 - 2 * smoothing) + smoothing
    expected = np.mean(np.logaddexp(0, logits) - goals * logits)
    (row,) = task.train(member, model)
    assert row["train_loss"] == pytest.approx(expected, rel=1e-5)


def test_log_loss_is_that_of_scikit_learn():
    from sklearn import metrics

    rng = np.random.default_rng(0)
    labels, logits = rng.integers(0, 2, 50), rng.normal(scale=3, size=50)
    expected = metrics.log_loss(labels, 1 / (1 + np.exp(-logits)))
    assert log_loss(labels, logits) == pytest.approx(expected)
    assert log_loss(np.array([1, 0]), np.array([-1e4, 1e4])) == 1e4


@pytest.mark.parametrize(("criterion", "kept"), [(None, 2), (log_loss, 0)])
def test_the_last_epoch_is_kept_unless_a_criterion_chooses(task: Task, criterion, kept):
    member = member_config(epochs=3, **FAST)
    labels = 1 - task.valid["label"].to_numpy()  # the more it learns, the worse it looks
    model, history = task.fresh(member, valid_labels=labels, criterion=criterion)
    assert [row["epoch"] for row in history] == [1, 2, 3]
    losses = [row["valid_loss"] for row in history]
    assert np.argmin(losses) == 0 and len(set(losses)) == 3
    logits = model.predict(read_pairs_for(member, task.valid, task.tokenizer))
    assert log_loss(labels, logits) == pytest.approx(losses[kept], rel=1e-9)
    accuracy = np.mean((logits > 0) == (labels == 1))
    assert history[kept]["valid_accuracy"] == pytest.approx(accuracy)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_weights_are_stored_in_the_format_they_were_trained_in(task: Task, precision):
    """The out-of-fold logits are those of the stored weights, to the last bit."""
    folder = task.folder / "model"
    folder.mkdir()
    files = fold_files(task.folder, task.training, task.valid)
    member = member_config(precision=precision, epochs=2)
    train_fold_model(member, files, 0.0, task.pretrained, None, folder)
    kinds = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    for name, values in load_file(folder / "model.safetensors").items():
        is_matrix = name.startswith("encoder.") and values.ndim > 1
        assert values.dtype == (kinds[precision] if is_matrix else torch.float32), name
    again = load_fold_model(folder, task.pretrained).predict(task.valid)
    assert np.array_equal(again, np.load(folder / "oof.npy"))


def test_a_seed_gives_a_network_and_another_seed_another(task: Task):
    member = member_config(dropout=0.1)
    ends = [
        state_of(task.fresh(member, seed=seed, checkpoint=name)[0])
        for name, seed in {"a": 5, "b": 5, "c": 6}.items()
    ]
    assert_same_bits(ends[0], ends[1])
    assert distance(ends[0], ends[2]) > 0.1


def test_every_epoch_cuts_the_rows_into_other_batches(task: Task):
    task.fresh(member_config(epochs=2))
    rows = [row for batch, _ in task.watched.read for row in batch]
    first, second = rows[: len(task.training)], rows[len(task.training) :]
    assert sorted(first) == sorted(second) and first != second


def reversed_in(task: Task, swap: float, seed: int, name: str) -> np.ndarray:
    """bool[2, P]: which rows were read in reverse order in either epoch."""
    member = member_config("cross", epochs=2)
    task.fresh(member, swap=swap, seed=seed, checkpoint=name)
    rows = [row for batch, _ in task.watched.read for row in batch]
    flags = np.array([flag for _, batch in task.watched.read for flag in batch])
    epochs = np.split(np.array(rows), 2)
    assert all(sorted(epoch) == list(range(len(task.training))) for epoch in epochs)
    return np.array([f[np.argsort(e)] for f, e in zip(np.split(flags, 2), epochs, strict=True)])


def test_swaps_are_drawn_from_seed_and_epoch(task: Task):
    first, again = (reversed_in(task, 0.5, 5, name) for name in "ab")
    other = reversed_in(task, 0.5, 6, "c")
    assert np.array_equal(first, again)
    assert (first[0] != first[1]).any() and (first != other).any()
    assert 0.4 < first.mean() < 0.6


@pytest.mark.parametrize(("swap", "expected"), [(0.0, False), (1.0, True)])
def test_swap_can_be_never_or_always(task: Task, swap, expected):
    assert (reversed_in(task, swap, 5, "swap") == expected).all()


# Refusals -----------------------------------------------------------------------------------------


def test_a_loss_that_is_not_finite_names_the_learning_rate(task: Task):
    member = member_config(encoder_lr=1e30, head_lr=1e30)
    with pytest.raises(UserError, match=r"tiny fold 0.*epoch 1.*training\.encoder_lr") as error:
        task.fresh(member)
    assert "1e+30" in str(error.value)


def test_collapsed_predictions_name_the_learning_rate(task: Task):
    member = member_config(encoder_lr=1e-9, head_lr=1e-9)
    model = task.network(member)
    nn.init.zeros_(model.head[-1].weight)
    with pytest.raises(UserError, match=r"tiny fold 0.*one class(.|\n)*training\.encoder_lr"):
        task.train(member, model)


def test_an_encoder_without_layers_cannot_checkpoint_gradients(task: Task):
    member = member_config(gradient_checkpointing=True)
    model = task.network(member)
    model.encoder.checkpoint_activations = NgramEncoder(8).checkpoint_activations
    with pytest.raises(UserError, match="NgramEncoder has no layers.*gradient_checkpointing"):
        task.train(member, model)


# The whole ----------------------------------------------------------------------------------------


def test_a_tiny_network_learns_what_it_has_not_seen(task: Task, sample: Path):
    task.training = read_pairs(sample / "train.csv", labelled=True).frame
    task.valid = read_pairs(sample / "dev.csv", labelled=True).frame
    member = member_config(epochs=4, batch_pairs=32, encoder_lr=5e-3, head_lr=5e-3)
    _, history = task.fresh(member)
    losses = [row["train_loss"] for row in history]
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.4 * losses[0]
    assert history[-1]["valid_accuracy"] > 0.7  # the majority class: 0.58


@pytest.mark.parametrize(("architecture", "attack"), [("siamese", FGM), ("cross", PGD)])
def test_a_tiny_network_learns_under_attack(task: Task, architecture, attack):
    """By heart, at least: the first 32 pairs."""
    attack = attack | {"epsilon": 0.45}  # its embeddings are small, too
    task.training = task.valid = task.training.iloc[:32]
    member = member_config(architecture, epochs=16, label_smoothing=0.0, adversarial=attack, **FAST)
    _, history = task.fresh(member, swap=0.5)
    assert history[-1]["train_loss"] < 0.6 * history[0]["train_loss"]
    labels = task.valid["label"]
    assert history[-1]["valid_accuracy"] > max(labels.mean(), 1 - labels.mean()) + 0.2


@pytest.mark.usefixtures("one_attempt")
def test_a_fold_model_can_be_read_back(task: Task):
    member, folder = member_config("cross", epochs=2), task.folder / "tiny" / "fold1"
    folder.mkdir(parents=True)
    files = fold_files(task.folder, task.training, task.valid, fold=1)
    train_fold_model(member, files, 0.5, task.pretrained, None, folder)
    assert sorted(path.name for path in folder.iterdir()) == [
        "history.json",
        "member.json",
        "model.safetensors",
        "oof.npy",
    ]
    logits = np.load(folder / "oof.npy", allow_pickle=False)
    assert logits.dtype == np.float64 and logits.shape == (len(task.valid),)
    model = load_fold_model(folder, task.pretrained)
    assert model.member == member and not model.model.training
    assert np.array_equal(model.predict(task.valid), logits)
    turned = task.valid.assign(label=-1).iloc[::-1].reset_index(drop=True)
    np.testing.assert_allclose(model.predict(turned), logits[::-1], atol=1e-5)
    history = read_json(folder / "history.json")
    losses = [row["valid_loss"] for row in history]
    assert log_loss(task.valid["label"].to_numpy(), logits) == pytest.approx(losses[-1])


def test_a_training_that_learns_nothing_is_repeated_once_and_written_down(
    task: Task, monkeypatch, capsys
):
    """With another seed and half the rates; its checkpoint is one of its own."""
    member, folder = member_config(epochs=2), task.folder / "tiny" / "fold0"
    folder.mkdir(parents=True)
    files = fold_files(task.folder, task.training.assign(label=0), task.valid)
    tried = []

    def watched(network, part, own, objective, conduct):
        tried.append((network.member, conduct.seed, conduct.checkpoint.name))
        return fit(network, part, own, objective, conduct)

    monkeypatch.setattr(fold_model, "fit", watched)
    train_fold_model(member, files, 0.0, task.pretrained, None, folder)
    (first, *_), (again, *_) = tried
    assert first == member and again.training.encoder_lr == member.training.encoder_lr / 2
    assert again.training.head_lr == member.training.head_lr / 2
    assert [(seed, name) for _, seed, name in tried] == [
        (2020, "checkpoint.safetensors"),
        (2021, "checkpoint-again.safetensors"),
    ]
    record = read_json(folder / "member.json")
    assert record["learned_nothing_over"] == "always answering 'different'"
    assert read_member(folder) == again and not list(folder.glob("checkpoint*"))
    assert "again, with another seed" in capsys.readouterr().err


@pytest.mark.usefixtures("one_attempt")
def test_a_training_that_collapses_is_repeated_once(task: Task, monkeypatch):
    folder = task.folder / "tiny" / "fold0"
    folder.mkdir(parents=True)
    files = fold_files(task.folder, task.training, task.valid)
    failures = [TrainingFailed("the predictions have collapsed")]

    def collapsing(*arguments):
        if failures:
            raise failures.pop()
        return fit(*arguments)

    monkeypatch.setattr(fold_model, "fit", collapsing)
    train_fold_model(member_config(), files, 0.0, task.pretrained, None, folder)
    assert read_member(folder).seed == 2021
    failures += [TrainingFailed("once"), TrainingFailed("twice")]
    with pytest.raises(TrainingFailed, match="once"):  # popped last
        train_fold_model(member_config(), files, 0.0, task.pretrained, None, folder)


@pytest.mark.parametrize(
    ("right", "learned"),
    [
        ([1, 1, 1, 1, 1, 1], True),  # six components better, none worse: p = 1/64
        ([1, 1, 1, 1, 0, 0], False),  # four better, two level: p = 1/16
        ([0] * 6, False),
    ],
)
def test_what_counts_as_learned(right: list[int], learned: bool):
    """In each component a pair of each label; the answer 0 to all is right in one of them."""
    rows = [(f"问{n}", f"答{n}{label}", label) for n in range(6) for label in (0, 1)]
    own = pd.DataFrame(rows, columns=["query1", "query2", "label"])
    logits = np.array(
        [-1.0 if label == 0 or not right[int(q[1:])] else 1.0 for q, _, label in rows]
    )
    assert has_learned(own, logits, majority=0) == learned


def test_a_member_starts_from_anothers_encoder(task: Task):
    # A learning rate of nothing: what comes out is what it began with.
    still = {"encoder_lr": 1e-12, "weight_decay": 0.0}
    first, second = member_config("siamese", **FAST), member_config("cross", **still)
    folders = [task.folder / name for name in ("first", "second")]
    files = fold_files(task.folder, task.training, task.valid)
    for folder, member, start in zip(
        folders, (first, second), (None, folders[0] / "model.safetensors"), strict=True
    ):
        folder.mkdir()
        train_fold_model(member, files, 0.5, task.pretrained, start, folder)
    one, other = (load_file(folder / "model.safetensors") for folder in folders)
    shared = [name for name in one if name.startswith("encoder.")]
    assert shared
    for name in shared:
        torch.testing.assert_close(other[name], one[name], rtol=0, atol=1e-6)


def test_folds_and_members_draw_their_own_numbers():
    members = [member_config().model_copy(update={"seed": seed}) for seed in (2020, 2021)]
    seeds = {fold_seed(member, fold) for member in members for fold in range(10)}
    assert len(seeds) == 20


def test_the_model_is_on_its_device_before_the_vocabulary_is_cut(
    sample: Path, pretrained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `cut_vocabulary` makes has to lie where the batches will be. "meta" plays the GPU."""
    frame = read_pairs(sample / "train.csv", labelled=True).frame.iloc[:20]
    member = member_config()
    model, tokenizer = build_model(member, pretrained, 0)
    monkeypatch.setattr(PartialState(), "device", torch.device("meta"))
    cut = []

    def cut_vocabulary(embedding: nn.Embedding, _: np.ndarray):
        cut.append(embedding.weight.device.type)
        return nullcontext()

    monkeypatch.setattr("src.training.fold_model.cut_vocabulary", cut_vocabulary)
    monkeypatch.setattr("src.training.fold_model.train", lambda *_, **__: ([], None))
    fit(FoldModel(model, tokenizer, member), frame, frame, Objective(), Conduct("", 0))
    assert cut == ["meta"]
