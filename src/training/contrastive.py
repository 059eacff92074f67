"""A contrastive term: every question nearer to its paraphrases than to all others of the batch."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ..errors import UserError
from ..models.api import Scored

TEMPERATURE = 0.05  # of cosines, as Gao et al. 2021 (SimCSE) use it


def contrastive_loss(scored: Scored, batch: Any, labels: Tensor) -> Tensor:
    """Every question should be nearer to each of its paraphrases than to any different question.

    The cross-entropy of a paraphrase among itself and all questions of the batch that are not
    known to ask the same, by cosine / TEMPERATURE (in-batch negatives: Henderson et al. 2017,
    section 4; several positives: Khosla et al. 2020). The batch holds whole question groups, so
    the near misses that the annotators wrote are among the negatives.

    Args:
        scored: of a bi-encoder, whose `vectors` are float[Q, H].
        batch: its `left` and `right` are LongTensor[P], the pairs' rows in `vectors`.
        labels: float[P], 1 where the questions ask the same.

    Returns:
        The mean over both directions of all such pairs; 0 where the batch has none.

    Raises:
        UserError: the network has no question vectors.
    """
    if scored.vectors is None:
        raise UserError("losses.contrastive needs question vectors: use architecture=siamese.")
    vectors, left, right, same = scored.vectors, batch.left, batch.right, labels == 1
    unit = functional.normalize(vectors.float(), dim=1)
    cosines = unit @ unit.T / TEMPERATURE
    group = known_same(len(unit), left[same], right[same])
    different = cosines.masked_fill(group, float("-inf")).logsumexp(1)
    anchors = torch.cat([left[same], right[same]])
    positives = torch.cat([right[same], left[same]])
    anchors, positives = anchors[anchors != positives], positives[anchors != positives]
    if len(anchors) == 0:
        return vectors.sum() * 0.0
    scores = cosines[anchors, positives]
    return (torch.logaddexp(scores, different[anchors]) - scores).mean()


def known_same(count: int, left: Tensor, right: Tensor) -> Tensor:
    """Which of `count` questions ask the same, as far as a batch knows: BoolTensor[Q, Q].

    Args:
        left, right: LongTensor[S], the ends of pairs of the same question.

    Up to four such pairs are followed: A = B and B = C, so A and C are the same. A question is the
    same as itself.
    """
    group = torch.eye(count, device=left.device)
    group[left, right] = 1.0
    group[right, left] = 1.0
    return ((group @ group) @ (group @ group)) > 0
