"""The contracts: what an encoder is, what a batch of pairs is, and what a network says of it.

An encoder turns packed questions into vectors. An architecture reads a pair frame in its own way
(`Pairs`), cuts batches from it (`Batch`) and scores them with an encoder and a head (`PairModel`).
Training, prediction, search and the laboratory know these contracts and nothing of the classes
behind them; models/registry.py says which name stands for which class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from ..config import MemberConfig
from ..errors import UserError
from .precision import autocast, half_type
from .tokens import Tokens


class Tokenizer(Protocol):
    """What is needed of a transformers tokenizer: text → token ids."""

    def __call__(self, *texts: Any, **options: Any) -> Any:
        """A mapping with `input_ids`, and `token_type_ids` where asked for."""
        ...

    @property
    def all_special_ids(self) -> list[int]:
        """Ids of padding, beginning, end and unknown."""
        ...

    @property
    def backend_tokenizer(self) -> Any:
        """The `tokenizers` pipeline behind it."""
        ...


class Encoder(nn.Module, ABC):
    """Questions → vectors."""

    hidden_size: int  # components of a question's vector

    @property
    @abstractmethod
    def word_embeddings(self) -> nn.Embedding:
        """The table that adversarial training perturbs."""

    @property
    def layers(self) -> Sequence[nn.Module]:
        """Layers from bottom to top, for layer-wise learning rates; none: one rate for all."""
        return ()

    @property
    def positions(self) -> int | None:
        """The longest sequence in tokens; None where there is no limit."""
        return None

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.word_embeddings.weight.device

    def checkpoint_activations(self) -> None:
        """Recompute activations in the backward pass instead of keeping them.

        Raises:
            UserError: the encoder has no layers for which that would be worth it.
        """
        raise UserError(
            f"{type(self).__name__} has no layers whose activations could be recomputed. Set "
            "training.gradient_checkpointing=false for its member."
        )

    @abstractmethod
    def embed(self, tokens: Tokens, pooling: str) -> Tensor:
        """Question vectors [B, H], float32; an encoder with a rule of its own ignores `pooling`."""


class TokenEncoder(Encoder):
    """An encoder that gives every token a vector, so that it can also read a pair."""

    @abstractmethod
    def forward(self, tokens: Tokens) -> Tensor:
        """Token vectors [T, H]."""


class Batch(Protocol):
    """Some pairs, ready for a network."""

    @property
    def tokens(self) -> Tokens:
        """All that the encoder reads."""
        ...

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device."""
        ...


class Pairs(Protocol):
    """The P rows of a pair frame, tokenised once for an architecture."""

    @property
    def lengths(self) -> np.ndarray:
        """int64[P], tokens of a row."""
        ...

    @property
    def groups(self) -> np.ndarray:
        """int64[P]: rows with the same number share computation within a batch."""
        ...

    @property
    def vocabulary(self) -> np.ndarray:
        """int64[R], ascending: the token ids that occur."""
        ...

    def __len__(self) -> int: ...

    def collate(self, rows: np.ndarray, reversed_rows: np.ndarray) -> Batch:
        """The batch of `rows`, int[B]; `reversed_rows`, bool[B], are read the other way round."""
        ...


class Scored(NamedTuple):
    """Logits [P] of the pairs and, of a bi-encoder, the vectors [Q, H] of their questions."""

    logits: Tensor
    vectors: Tensor | None = None


class PairModel(nn.Module, ABC):
    """An encoder with a head: one logit a pair, computed in the member's precision."""

    encoder: Encoder
    precision: str = "fp32"

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.encoder.device

    def forward(self, batch: Any) -> Scored:
        """Logits [P], and what losses need besides."""
        with autocast(self.device, self.precision):
            return self.score_batch(batch)

    @torch.inference_mode()
    def predict(self, pairs: Any) -> np.ndarray:
        """Logits float64[P], without dropout; the order inside a pair makes no difference."""
        self.eval()
        with autocast(self.device, self.precision):
            return self.score_pairs(pairs)

    def compact_state(self) -> dict[str, Tensor]:
        """The state as it is stored: the encoder's matrices in the 16 bits that it computes in.

        Those are what its products see in any case. Head, biases and norms stay in fp32.
        """
        half = half_type(self.device, self.precision)
        return {
            name: values.to(half)
            if half
            and name.startswith("encoder.")
            and values.ndim > 1
            and values.is_floating_point()
            else values
            for name, values in self.state_dict().items()
        }

    @abstractmethod
    def score_batch(self, batch: Any) -> Scored:
        """`forward` without its precision."""

    @abstractmethod
    def score_pairs(self, pairs: Any) -> np.ndarray:
        """`predict` without its precision."""


@dataclass(frozen=True)
class Architecture:
    """A way to score a pair.

    Attributes:
        read: tokenises a pair frame; the last argument is the limit of tokens a question.
        build: the network over an encoder, with a fresh head.
        questions: how many questions stand in one sequence.
    """

    read: Callable[[pd.DataFrame, Tokenizer, int], Pairs]
    build: Callable[[Encoder, MemberConfig], PairModel]
    questions: int


@dataclass(frozen=True)
class Family:
    """Encoders of one kind.

    Attributes:
        load: (model directory or hub name, dropout) → encoder and tokenizer.
        gives_tokens: whether it is a `TokenEncoder` of transformers, which a cross-encoder,
            export and pre-training need.
    """

    load: Callable[[str, float], tuple[Encoder, Tokenizer]]
    gives_tokens: bool
