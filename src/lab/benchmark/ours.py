"""This project as a contender: the functions that the pipeline calls, with a clock around them."""

import io
from contextlib import AbstractContextManager, redirect_stderr
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from accelerate import PartialState

from ...config import AdversarialConfig, AugmentConfig, MemberConfig
from ...models.api import PairModel, Pairs, Tokenizer
from ...models.registry import build_model, read_pairs_for
from ...training.loop import Conduct, LabelledPairs, train
from ...training.objective import Objective
from ...training.vocabulary import cut_vocabulary, occurring_ids
from .turns import Work, counted_tokens, now, update_times

VALID_PAIRS = 8  # `train` chooses an epoch by some pairs; here there is one to choose from
Attack = Literal["none", "fgm", "pgd"]


@dataclass
class Ours:
    """A member of the ensemble.

    Attributes:
        frame: all training pairs; training updates the vectors of their words.
    """

    member: MemberConfig
    model: PairModel
    tokenizer: Tokenizer
    frame: pd.DataFrame

    def __post_init__(self) -> None:
        self.model.to(PartialState().device)

    @classmethod
    def load(cls, architecture: str, encoder: str, frame: pd.DataFrame, pretrained: Path) -> "Ours":
        """A member with all settings at their defaults."""
        member = MemberConfig(architecture=architecture, encoder=encoder)
        return cls(member, *build_model(member, pretrained, member.seed), frame)

    def train(self, rows: pd.DataFrame, precision: str, attack: Attack = "none") -> Work:
        """An epoch over `rows`, tokenisation included, until the last update of the weights."""
        adversarial = AdversarialConfig(method=attack)
        settings = self.member.training.model_copy(update={"epochs": 1, "adversarial": adversarial})
        self.model.precision = precision
        conduct = Conduct("bench", self.member.seed, AugmentConfig().swap)
        with (
            self.cut_vocabulary(),
            counted_tokens(self.model.encoder, _length, training=True) as tokens,
            update_times() as updates,
            redirect_stderr(io.StringIO()),  # the epoch's progress bar would tear the benchmark's
        ):
            started = now()
            training, valid = (self.labelled(part) for part in (rows, rows[:VALID_PAIRS]))
            objective = Objective.of(self.member)
            train(self.model, training, valid, settings, objective, conduct)
        return Work(len(rows), sum(tokens), updates[-1] - started)

    def predict(self, rows: pd.DataFrame, precision: str) -> Work:
        """Logits of `rows`, tokenisation included."""
        self.model.precision = precision
        with counted_tokens(self.model.encoder, _length, training=False) as tokens:
            started = now()
            self.model.predict(self.read(rows))
            return Work(len(rows), sum(tokens), now() - started)

    def read(self, rows: pd.DataFrame) -> Pairs:
        """Tokenised pairs."""
        return read_pairs_for(self.member, rows, self.tokenizer)

    def labelled(self, rows: pd.DataFrame) -> LabelledPairs:
        """Tokenised pairs and their labels."""
        return LabelledPairs(self.read(rows), rows["label"].to_numpy())

    def cut_vocabulary(self) -> AbstractContextManager[None]:
        """The encoder with the words of `frame` only, as in training."""
        return cut_vocabulary(self.model.encoder.word_embeddings, self._words)

    @cached_property
    def _words(self) -> np.ndarray:
        return occurring_ids(self.tokenizer, self.read(self.frame).vocabulary)


def _length(arguments: tuple) -> int:
    return len(arguments[0].ids)
