"""A structured self-attentive sentence embedding (Lin et al. 2017)."""

import torch
from torch import Tensor, nn

from ....models.tokens import Tokens
from .bilstm import BiLstm
from .lexical import masked


class SelfAttention(BiLstm):
    """BiLSTM states, weighted by `hops` learnt attentions: A = softmax(W₂ tanh(W₁ Hᵀ)), M = A H.

    The paper's penalty ‖AAᵀ − I‖², which keeps the hops apart, is left out: it is a term of the
    loss, and all encoders here are trained with the same one.
    """

    def __init__(
        self, table: Tensor, units: int, attention: int, hops: int, dropout: float
    ) -> None:
        super().__init__(table, units, dropout)
        self.scores = nn.Sequential(
            nn.Linear(2 * units, attention, bias=False),
            nn.Tanh(),
            nn.Linear(attention, hops, bias=False),
        )
        self.hidden_size = 2 * units * hops

    def embed(self, tokens: Tokens, pooling: str) -> Tensor:
        """M as one row: [B, hops · 2 · units], whatever `pooling` says."""
        states = self(tokens)
        weights = masked(tokens.unfold(self.scores(states)), tokens).softmax(dim=1)
        return torch.einsum("bwr,bwh->brh", weights, tokens.unfold(states)).flatten(1).float()
