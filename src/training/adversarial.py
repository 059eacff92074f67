"""Adversarial perturbation of the word embeddings.

FGM (Miyato, Dai & Goodfellow 2017, "Adversarial Training Methods for Semi-Supervised Text
Classification") takes one step of length ε along the normalised gradient. PGD (Madry et al. 2018,
"Towards Deep Learning Models Resistant to Adversarial Attacks") takes K smaller steps, each
followed by a projection onto the ball of radius ε. Both perturb the embedding table itself: a word
moves the same way wherever it stands in the batch. The norm is taken over the whole gradient.
"""

from types import TracebackType

import torch
from torch import Tensor, nn


class Perturbation:
    """A context in which rows of an embedding table are moved; leaving it restores them exactly.

    Only rows with a gradient are copied, moved and restored; the others are never written.
    Restoring happens also when the block raises.
    """

    def __init__(self, embedding: nn.Embedding, epsilon: float) -> None:
        self.weight, self.epsilon = embedding.weight, epsilon
        self._rows: Tensor | None = None

    def __enter__(self) -> "Perturbation":
        self._rows = None
        return self

    @torch.no_grad()
    def move(self, gradient: Tensor | None, step_size: float) -> None:
        """Move along `gradient` ([V, H]) by `step_size`, then project onto the ε-ball.

        The ball is around the original rows, its norm the Euclidean one over all of them
        together. A gradient that is absent, zero or not finite moves nothing.
        """
        if gradient is None:
            return
        if self._rows is None:
            self._rows = gradient.abs().amax(dim=1).nonzero().squeeze(1)
            self._original = self.weight[self._rows].clone()
            self.delta = torch.zeros_like(self._original)
        direction = gradient[self._rows].to(self.delta.dtype)
        norm = direction.norm()
        if not torch.isfinite(norm) or norm == 0:
            return
        self.delta += direction * (step_size / norm)
        size = self.delta.norm()
        if size > self.epsilon:
            self.delta *= self.epsilon / size
        self.weight[self._rows] = self._original + self.delta

    @torch.no_grad()
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._rows is not None:
            self.weight[self._rows] = self._original
            self._rows = None
