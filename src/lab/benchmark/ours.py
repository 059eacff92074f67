"""This project as a contender: the functions that the pipeline calls, with a clock around them."""

import io
import tempfile
from contextlib import AbstractContextManager, redirect_stderr
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from accelerate import PartialState
from torch import nn
from transformers import PreTrainedTokenizerBase

from ...config import AdversarialConfig, AugmentConfig, MemberConfig, TrainingConfig
from ...models.registry import build_model, read_for
from ...training.loop import autocast, train
from ...training.objective import Objective
from ...training.vocabulary import cut_vocabulary, occurring_ids
from .turns import Work, counted_tokens, now, update_times

VALID_PAIRS = 8  # `train` chooses an epoch by some pairs; here there is one to choose from


@dataclass
class Own:
    """A member of the ensemble.

    Attributes:
        frame: all training pairs; training updates the vectors of their words.
    """

    member: MemberConfig
    model: nn.Module
    tokenizer: PreTrainedTokenizerBase
    frame: pd.DataFrame

    def __post_init__(self) -> None:
        self.model.to(PartialState().device)

    @classmethod
    def load(cls, architecture: str, encoder: str, frame: pd.DataFrame, pretrained: Path) -> "Own":
        """A member with all settings at their defaults."""
        member = MemberConfig(architecture=architecture, encoder=encoder)
        return cls(member, *build_model(member, pretrained, member.seed), frame)

    def train(self, rows: pd.DataFrame, precision: str, attack: str = "none") -> Work:
        """An epoch over `rows`, tokenisation included, until the last update of the weights."""
        settings = TrainingConfig(
            epochs=1, precision=precision, adversarial=AdversarialConfig(method=attack)
        )
        with (
            self.cut_vocabulary(),
            counted_tokens(self.model.encoder, _length, training=True) as tokens,
            update_times() as updates,
            tempfile.TemporaryDirectory() as folder,
            redirect_stderr(io.StringIO()),  # the epoch's progress bar would tear the benchmark's
        ):
            started = now()
            train(
                self.model,
                self.read(rows),
                rows["label"].to_numpy(),
                self.read(rows[:VALID_PAIRS]),
                rows["label"][:VALID_PAIRS].to_numpy(),
                settings,
                Objective(settings.label_smoothing),
                swap=AugmentConfig().swap,
                seed=self.member.seed,
                checkpoint=Path(folder) / "none.safetensors",
                title="bench",
            )
        return Work(len(rows), sum(tokens), updates[-1] - started)

    def predict(self, rows: pd.DataFrame, precision: str) -> Work:
        """Logits of `rows`, tokenisation included."""
        with (
            counted_tokens(self.model.encoder, _length, training=False) as tokens,
            autocast(PartialState().device, precision),
        ):
            started = now()
            self.model.predict(self.read(rows))
            return Work(len(rows), sum(tokens), now() - started)

    def read(self, rows: pd.DataFrame):
        """Tokenised pairs."""
        return read_for(self.member, rows, self.tokenizer)

    def cut_vocabulary(self) -> AbstractContextManager[None]:
        """The encoder with the words of `frame` only, as in training."""
        return cut_vocabulary(self.model.encoder.word_embeddings, self._words)

    @cached_property
    def _words(self) -> np.ndarray:
        return occurring_ids(self.tokenizer, self.read(self.frame).vocabulary)


def _length(arguments: tuple) -> int:
    return len(arguments[0].ids)
