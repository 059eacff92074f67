"""Triplet loss with semi-hard mining inside the batch (Schroff et al. 2015, FaceNet, section 3).

A batch holds whole question groups: the anchor is a question, the positive one that asks the same,
and the negatives are all questions of the batch that are not known to, the annotators' near misses
of the same group among them.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ....models.api import Scored
from ....training.contrastive import known_same

MARGIN = 0.2  # of squared distances between vectors of length 1, as in FaceNet


@dataclass(frozen=True)
class TripletLoss:
    """The mean triplet loss of a batch, times its number of pairs."""

    margin: float = MARGIN

    def __call__(self, scored: Scored, batch: Any, labels: Tensor) -> Tensor:
        """Scalar loss; `labels` are float[P], 0 or 1. A batch without a triplet costs nothing."""
        assert scored.vectors is not None  # a bi-encoder's
        vectors = functional.normalize(scored.vectors.float(), dim=1)
        same = labels == 1
        left, right = batch.left[same], batch.right[same]
        anchors, positives = torch.cat([left, right]), torch.cat([right, left])
        different = ~known_same(len(vectors), left, right)
        distances = squared_distances(vectors)
        usable = (anchors != positives) & different[anchors].any(dim=1)
        anchors, positives = anchors[usable], positives[usable]
        if len(anchors) == 0:
            return scored.vectors.sum() * 0.0
        negatives = semi_hard(distances.detach(), anchors, positives, different)
        losses = triplet_losses(distances, anchors, positives, negatives, self.margin)
        return losses.mean() * len(labels)


def squared_distances(unit: Tensor) -> Tensor:
    """‖u − v‖² = 2 − 2 cos of all pairs of vectors of length 1: [Q, H] → [Q, Q]."""
    return 2 - 2 * unit @ unit.T


def semi_hard(distances: Tensor, anchors: Tensor, positives: Tensor, different: Tensor) -> Tensor:
    """The negative of each (anchor, positive): LongTensor[T].

    The nearest of those that are farther from the anchor than the positive is. Where all are
    nearer, the farthest: the hardest ones early in training lead to collapse, says the paper.

    Args:
        distances: float[Q, Q]; different: BoolTensor[Q, Q], at least one True in an anchor's row.
    """
    rows = distances[anchors]
    allowed = different[anchors]
    farther = allowed & (rows > distances[anchors, positives][:, None])
    nearest_farther = rows.masked_fill(~farther, float("inf")).argmin(dim=1)
    farthest = rows.masked_fill(~allowed, float("-inf")).argmax(dim=1)
    return torch.where(farther.any(dim=1), nearest_farther, farthest)


def triplet_losses(
    distances: Tensor, anchors: Tensor, positives: Tensor, negatives: Tensor, margin: float
) -> Tensor:
    """max(0, d(a, p) − d(a, n) + margin) of each triplet, [T]."""
    gap = distances[anchors, positives] - distances[anchors, negatives]
    return (gap + margin).clamp_min(0.0)
