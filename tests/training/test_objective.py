"""The loss against values worked out by hand."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, tensor

from src.config import MemberConfig
from src.errors import UserError
from src.models.api import Scored
from src.models.siamese import SiameseBatch
from src.training.contrastive import TEMPERATURE
from src.training.contrastive import contrastive_loss as term
from src.training.objective import Objective


def vectors_at(*degrees: float) -> Tensor:
    """Vectors in a plane, of different lengths, because only their directions may count."""
    angles = torch.deg2rad(tensor(degrees))
    lengths = torch.arange(1, len(degrees) + 1)[:, None]
    return torch.stack([angles.cos(), angles.sin()], dim=1) * lengths


def softmax_loss(positive: float, *others: float) -> float:
    """Cross-entropy of the first of some cosines."""
    return math.log(
        sum(math.exp((cosine - positive) / TEMPERATURE) for cosine in (positive, *others))
    )


def cosine(degrees: float) -> float:
    return math.cos(math.radians(degrees))


def test_cross_entropy_with_smoothed_labels():
    logits, labels = tensor([2.0, -1.0]), tensor([1.0, 0.0])
    chances = torch.sigmoid(logits)
    goals = tensor([0.95, 0.05])
    expected = -(goals * chances.log() + (1 - goals) * (1 - chances).log()).sum()
    loss = Objective(label_smoothing=0.05)(Scored(logits), None, labels)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)


def contrastive_loss(vectors: Tensor, left: Tensor, right: Tensor, same: Tensor) -> Tensor:
    """The term over pairs of rows of `vectors`."""
    return term(Scored(None, vectors), SiameseBatch(None, left, right), same.float())


def test_contrastive_loss_by_hand():
    # 0 = 1, and 2 is a near miss of both.
    loss = contrastive_loss(
        vectors_at(0, 4, 10), tensor([0, 0]), tensor([1, 2]), tensor([True, False])
    )
    expected = (
        softmax_loss(cosine(4), cosine(10)) + softmax_loss(cosine(4), cosine(6))
    ) / 2  # from 0, and from 1
    assert loss.item() == pytest.approx(expected, rel=1e-4)


def test_paraphrases_of_paraphrases_are_no_negatives():
    # 0 = 1 and 1 = 2, so 2 is no negative of 0, and is none of its positives either: no pair says.
    left, right, same = tensor([0, 1]), tensor([1, 2]), tensor([True, True])
    loss = contrastive_loss(vectors_at(0, 40, 10), left, right, same)
    assert loss.item() == pytest.approx(0.0, abs=1e-6)


def test_a_batch_without_a_paraphrase_has_no_contrastive_loss():
    vectors = vectors_at(0, 10).requires_grad_()
    for left, right, same in [([0], [1], [False]), ([0], [0], [True])]:  # a question and itself
        loss = contrastive_loss(vectors, tensor(left), tensor(right), tensor(same))
        assert loss.item() == 0.0
        loss.backward()
    assert vectors.grad.abs().max() == 0.0


def test_the_objective_weighs_the_contrastive_loss_by_pairs():
    vectors, labels = vectors_at(0, 4, 10), tensor([1.0, 0.0])
    batch = SiameseBatch(None, tensor([0, 0]), tensor([1, 2]))
    scored = Scored(tensor([2.0, -1.0]), vectors)
    plain = Objective()(scored, batch, labels)
    both = Objective(weights={"contrastive": 0.3})(scored, batch, labels)
    mean = contrastive_loss(vectors, batch.left, batch.right, labels == 1)
    assert (both - plain).item() == pytest.approx(0.3 * 2 * mean.item(), rel=1e-6)
    assert Objective(weights={"contrastive": 0.0})(scored, batch, labels) == plain


def test_a_network_without_question_vectors_has_no_contrastive_loss():
    objective = Objective(weights={"contrastive": 0.3})
    with pytest.raises(UserError, match="losses.contrastive.*architecture=siamese"):
        objective(Scored(tensor([2.0])), None, tensor([1.0]))


def test_an_objective_is_made_of_a_members_settings():
    settings = {"architecture": "siamese", "encoder": "tiny"}
    member = MemberConfig(**settings, losses={"contrastive": 0.2})
    assert Objective.of(member) == Objective(0.05, {"contrastive": 0.2})
    with pytest.raises(UserError, match="no loss 'focal'.*contrastive"):
        Objective.of(MemberConfig(**settings, losses={"focal": 1.0}))


@given(st.integers(0, 10_000))
def test_the_contrastive_loss_sees_no_order_and_no_length(seed: int):
    rng = np.random.default_rng(seed)
    count, pairs = 6, 5
    vectors = torch.from_numpy(rng.standard_normal((count, 4)).astype(np.float32))
    left, right = (torch.from_numpy(rng.integers(0, count, pairs)) for _ in range(2))
    same = torch.from_numpy(rng.random(pairs) < 0.5)
    loss = contrastive_loss(vectors, left, right, same).item()
    assert loss >= 0.0
    scale = torch.from_numpy(rng.uniform(0.5, 2.0, (count, 1)).astype(np.float32))
    assert contrastive_loss(vectors * scale, left, right, same).item() == pytest.approx(
        loss, rel=1e-3, abs=1e-5
    )
    assert contrastive_loss(vectors, right, left, same).item() == pytest.approx(loss, abs=1e-5)
    # Renaming the questions changes nothing.
    order = torch.from_numpy(rng.permutation(count))
    place = torch.argsort(order)
    assert contrastive_loss(vectors[order], place[left], place[right], same).item() == (
        pytest.approx(loss, rel=1e-3, abs=1e-5)
    )
