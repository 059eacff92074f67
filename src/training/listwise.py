"""A listwise term: of a question's candidates, those that ask the same come first."""

from typing import Any

from torch import Tensor
from torch.nn import functional

from ..errors import UserError
from ..models.api import Scored


def listwise_loss(scored: Scored, batch: Any, labels: Tensor) -> Tensor:
    """Each pair labelled 1 against the pairs of its group that are labelled 0.

    The cross-entropy of one such pair among itself and the others, by their logits: a softmax over
    the candidates of a question (ListNet: Cao et al. 2007, section 4, with several right answers
    taken one by one). The batch holds whole groups.

    Args:
        scored: its `logits` are float[P].
        batch: of a bi-encoder; `left` is LongTensor[P], the pairs' first questions.
        labels: float[P], 0 or 1.

    Returns:
        The mean over all such pairs; 0 where the batch has none.

    Raises:
        UserError: the network is no bi-encoder.
    """
    if scored.vectors is None:
        raise UserError("losses.listwise needs a bi-encoder: use architecture=siamese.")
    logits = scored.logits.float()
    rival = (batch.left[:, None] == batch.left) & (labels == 0)  # [P, P]
    asked = (labels == 1) & rival.any(dim=1)
    if not asked.any():
        return logits.sum() * 0.0
    rivals = logits.expand(len(logits), -1).masked_fill(~rival, float("-inf"))[asked].logsumexp(1)
    return functional.softplus(rivals - logits[asked]).mean()
