"""What the encoders here have in common: a table of vectors, and nothing pre-trained above it."""

import torch
from torch import Tensor, nn

from ....models.api import Encoder
from ....models.tokens import Tokens


class LexicalEncoder(Encoder):
    """Base: `word_embeddings` and the size of a question's vector.

    Args:
        table: float32[V, D], the vectors to start from.
        hidden_size: components of a question's vector.
        dropout: of the word vectors, while training.
    """

    def __init__(self, table: Tensor, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.table = nn.Embedding.from_pretrained(table.clone(), freeze=False)
        self.hidden_size = hidden_size
        self.dropout = nn.Dropout(dropout)

    @property
    def word_embeddings(self) -> nn.Embedding:
        return self.table

    def vectors(self, tokens: Tokens) -> Tensor:
        """Word vectors [T, D]."""
        return self.dropout(self.table(tokens.ids))


def masked(rectangle: Tensor, tokens: Tokens) -> Tensor:
    """−∞ at the pads of a rectangle [B, width, …], so that no maximum or softmax sees them."""
    mask = tokens.mask.view(*tokens.mask.shape, *[1] * (rectangle.dim() - 2))
    return rectangle.masked_fill(~mask, torch.finfo(rectangle.dtype).min)
