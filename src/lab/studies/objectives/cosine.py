"""Cosine similarity as the answer: the network without a head, and its regression objective."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from ....models.api import Encoder, Scored
from ....models.siamese import Siamese


class CosineSiamese(Siamese):
    """A bi-encoder whose logit is the cosine of the two question vectors, and nothing else."""

    def __init__(self, encoder: Encoder, pooling: str) -> None:
        super().__init__(encoder, pooling, features=("u",), dropout=0.0)
        self.head = torch.nn.Sequential()

    def score(self, u: Tensor, v: Tensor) -> Tensor:
        """Cosines [P] of pairs of question vectors [P, H]."""
        return functional.cosine_similarity(u, v)


class CosineMse:
    """Σ (cos(u, v) − label)², the regression objective of Sentence-BERT (2019, section 3)."""

    def __call__(self, scored: Scored, batch: Any, labels: Tensor) -> Tensor:
        """Scalar loss, summed over the pairs; `labels` are float[P], 0 or 1."""
        assert scored.vectors is not None  # a bi-encoder's
        return cosine_mse(scored.vectors[batch.left], scored.vectors[batch.right], labels)


def cosine_mse(u: Tensor, v: Tensor, labels: Tensor) -> Tensor:
    """Σ (cos(u, v) − label)² over pairs of vectors [P, H] in float32."""
    return (functional.cosine_similarity(u.float(), v.float()) - labels).square().sum()
