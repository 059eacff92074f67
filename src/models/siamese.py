"""The bi-encoder: one shared encoder, one vector a question, a head over the pair's vectors.

Sentence-BERT (Reimers & Gurevych 2019, section 3, classification objective) with three changes:
the head is an MLP, its answer does not depend on the order of the pair, and a batch encodes each
distinct question once, however many of its pairs share it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from ..config import MemberConfig
from .api import Architecture, Encoder, PairModel, Scored, Tokenizer
from .head import Head
from .tokens import Tokens

_QUESTIONS = 128  # encoded at a time in prediction


@dataclass(frozen=True)
class SiameseBatch:
    """Q distinct questions and P pairs of them: `left`, `right` are LongTensor[P] into Q."""

    tokens: Tokens
    left: Tensor
    right: Tensor

    def to(self, device: torch.device) -> "SiameseBatch":
        """The same batch on another device."""
        return SiameseBatch(self.tokens.to(device), self.left.to(device), self.right.to(device))


class SiamesePairs:
    """The rows of a pair frame, tokenised once; each distinct question is kept once.

    `left` and `right` (int64[P]) index the distinct `questions`.
    """

    def __init__(self, frame: pd.DataFrame, tokenizer: Tokenizer, max_length: int) -> None:
        codes, questions = pd.factorize(pd.concat([frame["query1"], frame["query2"]]))
        self.left, self.right = np.split(codes.astype(np.int64), 2)
        self.questions = list(questions)
        encoded = tokenizer(self.questions, truncation=True, max_length=max_length)
        self.ids: list[list[int]] = encoded["input_ids"]
        lengths = np.fromiter(map(len, self.ids), np.int64, len(self.ids))
        self.lengths = lengths[self.left] + lengths[self.right]

    def __len__(self) -> int:
        return len(self.left)

    @property
    def groups(self) -> np.ndarray:
        """int64[P]: pairs with the same number share their first question."""
        return self.left

    @property
    def vocabulary(self) -> np.ndarray:
        """int64[R], ascending: the token ids that occur."""
        return np.unique(np.concatenate(self.ids))

    def collate(self, rows: np.ndarray, reversed_rows: np.ndarray) -> SiameseBatch:
        """The batch of `rows`; the order inside a pair does not matter here."""
        distinct, index = np.unique(
            np.concatenate([self.left[rows], self.right[rows]]), return_inverse=True
        )
        left, right = map(torch.from_numpy, np.split(index, 2))
        return SiameseBatch(Tokens.pack([self.ids[i] for i in distinct]), left, right)


class Siamese(PairModel):
    """Encoder, pooling, pair features, MLP head → one logit a pair."""

    def __init__(
        self, encoder: Encoder, pooling: str, features: Sequence[str], dropout: float
    ) -> None:
        super().__init__()
        self.encoder, self.pooling, self.features = encoder, pooling, tuple(features)
        hidden = encoder.hidden_size
        self.head: nn.Module = Head(len(self.features) * hidden, hidden, dropout)

    def embed(self, questions: Tokens) -> Tensor:
        """Question vectors [Q, H], float32."""
        return self.encoder.embed(questions, self.pooling)

    def score(self, u: Tensor, v: Tensor) -> Tensor:
        """Logits [P] of pairs of question vectors [P, H]; score(u, v) = score(v, u)."""
        return (self._directed(u, v) + self._directed(v, u)) / 2

    def _directed(self, u: Tensor, v: Tensor) -> Tensor:
        values = {"u": u, "v": v, "|u-v|": (u - v).abs(), "u*v": u * v}
        return self.head(torch.cat([values[name] for name in self.features], dim=1)).squeeze(1)

    def score_batch(self, batch: SiameseBatch) -> Scored:
        """Logits [P] and question vectors [Q, H]."""
        vectors = self.embed(batch.tokens)
        return Scored(self.score(vectors[batch.left], vectors[batch.right]), vectors)

    def score_pairs(self, pairs: SiamesePairs) -> np.ndarray:
        """Logits float64[P]: every distinct question is encoded once, in order of length."""
        order = np.argsort([len(ids) for ids in pairs.ids], kind="stable")
        vectors = torch.empty(len(order), self.encoder.hidden_size, device=self.device)
        for start in range(0, len(order), _QUESTIONS):
            chosen = order[start : start + _QUESTIONS]
            tokens = Tokens.pack([pairs.ids[i] for i in chosen]).to(self.device)
            vectors[torch.from_numpy(chosen)] = self.embed(tokens)
        logits = [
            self.score(vectors[pairs.left[rows]], vectors[pairs.right[rows]])
            for rows in np.array_split(np.arange(len(pairs)), len(pairs) // 4096 + 1)
        ]
        return torch.cat(logits).double().cpu().numpy()


def _build(encoder: Encoder, member: MemberConfig) -> Siamese:
    return Siamese(encoder, member.pooling, member.features, member.training.dropout)


ARCHITECTURE = Architecture(SiamesePairs, _build, questions=1)
