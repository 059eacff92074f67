"""The mean of a question's word vectors: hard to beat for its price (Wieting et al. 2016)."""

from torch import Tensor

from ....models.pooling import pool
from ....models.tokens import Tokens
from .lexical import LexicalEncoder


class Averaged(LexicalEncoder):
    """No word order, no parameters beyond the table, which stays as it was trained."""

    def __init__(self, table: Tensor) -> None:
        super().__init__(table, table.shape[1], dropout=0.0)
        self.table.weight.requires_grad_(False)

    def embed(self, tokens: Tokens, pooling: str) -> Tensor:
        """The word vectors, pooled."""
        return pool(self.vectors(tokens), tokens, pooling)
