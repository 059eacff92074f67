"""What both architectures say of a batch of pairs."""

from typing import NamedTuple

from torch import Tensor


class Scored(NamedTuple):
    """Logits [P] of the pairs and, of a bi-encoder, the vectors [Q, H] of their questions."""

    logits: Tensor
    vectors: Tensor | None = None
