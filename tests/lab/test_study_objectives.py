"""The losses and the miner of the objective study, against values worked out by hand."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from src.lab.studies.objectives.cosine import CosineMse, cosine_mse
from src.lab.studies.objectives.triplet import (
    TripletLoss,
    semi_hard,
    squared_distances,
    triplet_losses,
)
from src.models.api import Scored


def test_cosine_mse_and_its_gradient():
    """u = (1, 0), v = (1, 1): cos = 1/√2; d cos/du = (v − cos·|v|·u) / |v| = (0, 1/√2)."""
    u = torch.tensor([[1.0, 0.0]], requires_grad=True)
    v = torch.tensor([[1.0, 1.0]])
    loss = cosine_mse(u, v, torch.tensor([0.0]))
    loss.backward()
    assert loss.item() == pytest.approx(0.5)
    # 2 (cos − label) · d cos/du = 2 · 1/√2 · (0, 1/√2)
    assert u.grad.tolist()[0] == pytest.approx([0.0, 1.0], abs=1e-6)


def test_cosine_mse_is_zero_where_the_cosine_is_the_label():
    vectors = torch.tensor([[2.0, 0.0], [5.0, 0.0], [0.0, 3.0]])
    batch = SimpleNamespace(left=torch.tensor([0, 0]), right=torch.tensor([1, 2]))
    loss = CosineMse()(Scored(torch.zeros(2), vectors), batch, torch.tensor([1.0, 0.0]))
    assert loss.item() == pytest.approx(0.0, abs=1e-12)


def test_triplet_margin_cases():
    """Beyond the margin: nothing; inside it: the rest of it; wrong way round: more than it."""
    #                     anchor, positive, negatives at 1.5, 1.1 and 0.4
    distances = torch.tensor([[0.0, 1.0, 1.5, 1.1, 0.4]])
    anchor, positive = torch.zeros(3, dtype=torch.long), torch.ones(3, dtype=torch.long)
    losses = triplet_losses(distances, anchor, positive, torch.tensor([2, 3, 4]), margin=0.2)
    assert losses.tolist() == pytest.approx([0.0, 0.1, 0.8])


@pytest.mark.parametrize(
    ("negatives", "chosen"),
    [
        ([0.2, 0.6, 0.9], 3),  # the nearest of those beyond the positive at 0.5, not the hardest
        ([0.9, 0.2, 0.7], 4),
        ([0.1, 0.4, 0.3], 3),  # all nearer than the positive: the farthest of them
    ],
)
def test_semi_hard_choice(negatives: list[float], chosen: int):
    distances = torch.tensor([[0.0, 0.5, *negatives]])
    different = torch.tensor([[False, False, True, True, True]])
    zero, one = torch.tensor([0]), torch.tensor([1])
    assert semi_hard(distances, zero, one, different).tolist() == [chosen]


def test_triplet_loss_of_a_batch_by_hand():
    """Questions 0 = 1, and 2 a near miss: both directions of the positive pair are anchors."""
    vectors = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    batch = SimpleNamespace(left=torch.tensor([0, 0]), right=torch.tensor([1, 2]))
    labels = torch.tensor([1.0, 0.0])
    # d(0,1) = 2; d(0,2) = 2 − 1.2 = 0.8; d(1,2) = 2 − 1.6 = 0.4. Mean of 1.4 and 1.8, two pairs.
    loss = TripletLoss(margin=0.2)(Scored(torch.zeros(2), vectors), batch, labels)
    assert loss.item() == pytest.approx(2 * (1.4 + 1.8) / 2, rel=1e-5)


def test_paraphrases_of_paraphrases_are_no_negatives():
    """0 = 1 and 1 = 2: of 0, question 2 is the same, too; only 3 is left as a negative.

    At 0°, 40°, 45° and 180°: taken for a negative of 0, question 2 would be within the margin.
    """
    angles = torch.deg2rad(torch.tensor([0.0, 40.0, 45.0, 180.0]))
    vectors = torch.stack([angles.cos(), angles.sin()], dim=1)
    batch = SimpleNamespace(left=torch.tensor([0, 1, 0]), right=torch.tensor([1, 2, 3]))
    labels = torch.tensor([1.0, 1.0, 0.0])
    loss = TripletLoss(margin=0.2)(Scored(torch.zeros(3), vectors), batch, labels)
    # d(0,1) = 0.47 and d(0,2) = 0.59, not 0.2 more; every d(·,3) is above 3.
    assert loss.item() == pytest.approx(0.0, abs=1e-6)


def test_a_batch_without_a_triplet_costs_nothing():
    vectors = torch.randn(2, 3, requires_grad=True)
    batch = SimpleNamespace(left=torch.tensor([0]), right=torch.tensor([1]))
    for label in (0.0, 1.0):
        loss = TripletLoss()(Scored(torch.zeros(1), vectors), batch, torch.tensor([label]))
        loss.backward()
        assert loss.item() == 0.0
    assert vectors.grad.abs().sum() == 0


@given(st.integers(0, 2**32 - 1))
def test_mining_never_takes_a_question_that_is_the_same(seed: int):
    generator = torch.Generator().manual_seed(seed)
    unit = torch.nn.functional.normalize(torch.randn(6, 4, generator=generator), dim=1)
    different = torch.rand(6, 6, generator=generator) < 0.5
    different[:, 5] = True
    anchors, positives = torch.tensor([0, 1, 2]), torch.tensor([3, 4, 3])
    chosen = semi_hard(squared_distances(unit), anchors, positives, different)
    assert different[anchors, chosen].all()
