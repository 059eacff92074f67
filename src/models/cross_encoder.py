"""The cross-encoder: both questions in one sequence, so that every token sees the other question.

The pair's vector joins mean pooling with [CLS]. The order of a pair carries no meaning but the
network does not know it: in training a pair is reversed at random (swap augmentation), in
prediction both orders are averaged in logits, so that the answer is symmetric.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from ..config import MemberConfig
from ..errors import UserError
from .api import Architecture, Encoder, PairModel, Scored, TokenEncoder, Tokenizer
from .head import Head
from .pooling import pool
from .tokens import Tokens

_PAIRS = 64  # read at a time in prediction


@dataclass(frozen=True)
class CrossBatch:
    """P pairs, one sequence each."""

    tokens: Tokens

    def to(self, device: torch.device) -> "CrossBatch":
        """The same batch on another device."""
        return CrossBatch(self.tokens.to(device))


class CrossPairs:
    """The rows of a pair frame, tokenised once in both orders."""

    def __init__(self, frame: pd.DataFrame, tokenizer: Tokenizer, max_length: int) -> None:
        first, second = frame["query1"].tolist(), frame["query2"].tolist()
        arguments = {
            "truncation": "longest_first",
            "max_length": 2 * max_length,
            "return_token_type_ids": True,
        }
        # orders[0] reads query1 first, orders[1] query2 first.
        self.orders = [
            tokenizer(first, second, **arguments),
            tokenizer(second, first, **arguments),
        ]
        self.lengths = np.fromiter(map(len, self.orders[0]["input_ids"]), np.int64, len(frame))

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def groups(self) -> np.ndarray:
        """int64[P]: a pair shares no computation with another, so each is its own group."""
        return np.arange(len(self))

    @property
    def vocabulary(self) -> np.ndarray:
        """int64[R], ascending: the token ids that occur."""
        return np.unique(np.concatenate(self.orders[0]["input_ids"] + self.orders[1]["input_ids"]))

    def collate(self, rows: np.ndarray, reversed_rows: np.ndarray) -> CrossBatch:
        """The batch of `rows`, each in its own order or, where `reversed_rows`, the other."""
        ids, types = [], []
        for row, is_reversed in zip(rows, reversed_rows, strict=True):
            encoded = self.orders[int(is_reversed)]
            ids.append(encoded["input_ids"][row])
            types.append(encoded["token_type_ids"][row])
        return CrossBatch(Tokens.pack(ids, types))


class CrossEncoder(PairModel):
    """Encoder over the joined pair, mean pooling and [CLS], MLP head → one logit a pair."""

    def __init__(self, encoder: TokenEncoder, dropout: float) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = Head(2 * encoder.hidden_size, encoder.hidden_size, dropout)

    def score_batch(self, batch: CrossBatch) -> Scored:
        """Logits [P]."""
        tokens = batch.tokens
        hidden = self.encoder(tokens)
        pooled = torch.cat([pool(hidden, tokens, "mean"), pool(hidden, tokens, "cls")], dim=1)
        return Scored(self.head(pooled).squeeze(1))

    def score_pairs(self, pairs: CrossPairs) -> np.ndarray:
        """Logits float64[P], the mean of both orders, encoded in order of length."""
        order = np.argsort(pairs.lengths, kind="stable")
        logits = np.empty(len(pairs))
        for start in range(0, len(order), _PAIRS):
            rows = order[start : start + _PAIRS]
            batches = [pairs.collate(rows, np.full(len(rows), flip)) for flip in (False, True)]
            both = [self.score_batch(batch.to(self.device)).logits for batch in batches]
            logits[rows] = torch.stack(both).double().mean(0).cpu().numpy()
        return logits


def _build(encoder: Encoder, member: MemberConfig) -> CrossEncoder:
    if not isinstance(encoder, TokenEncoder):
        raise UserError(
            f"The encoder '{member.encoder}' gives one vector a sentence and cannot read a pair: "
            "use it with architecture=siamese."
        )
    return CrossEncoder(encoder, member.training.dropout)


ARCHITECTURE = Architecture(CrossPairs, _build, questions=2)
