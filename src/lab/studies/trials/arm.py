"""Arms and studies: what is compared with what."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ....config import Config
from .budget import Budget
from .split_parts import Parts


@dataclass(frozen=True)
class Trial:
    """What an arm is given: one training part of one seed, and where to look for encoders."""

    parts: Parts
    seed: int
    pretrained: Path
    title: str


@dataclass(frozen=True)
class Outcome:
    """What a trial has found.

    Attributes:
        scores: float64[P] a name, aligned with the evaluation part; above 0 means "the same". An
            arm can be scored in several ways (by its head, by cosine alone, under attack).
        training: the pair frame that it was trained on in the end, for the leak audit.
        history: one row an epoch.
        facts: numbers of the table: parameters, seconds, …
    """

    scores: Mapping[str, np.ndarray]
    training: pd.DataFrame
    history: list[dict[str, float]]
    facts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Arm:
    """One way to make a matcher.

    Attributes:
        name: as in the table.
        settings: JSON-able; all that the result depends on besides parts, seed and code. Under
            "member" a MemberConfig, whose encoder is read.
        make: trains and scores.
        reference: name of the arm that this one is compared with.
        within: scores of this arm that are compared with another one of its own, by name.
        inputs: files that `make` reads besides the parts.
    """

    name: str
    settings: Mapping[str, Any]
    make: Callable[[Trial], Outcome]
    reference: str
    inputs: Sequence[Path] = ()
    within: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Column:
    """One way to split the data.

    Attributes:
        name: as in the table.
        inputs: the files that it is made of.
        divide: the parts of a seed.
    """

    name: str
    inputs: Sequence[Path]
    divide: Callable[[int], Parts]


@dataclass(frozen=True)
class Design:
    """The arms and columns of a study on the data at hand.

    Attributes:
        notes: what had to be left out, and why.
    """

    arms: Sequence[Arm]
    columns: Sequence[Column]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Workplace:
    """Where a study finds what it needs.

    Attributes:
        train, dev: the competition's files; dev is for the one study that reports it.
        work: folder for everything that can be made again.
    """

    config: Config
    budget: Budget
    train: Path
    dev: Path | None
    work: Path

    def beside_data(self, *parts: str) -> Path | None:
        """A file that lies in, or next to, the data directory; None where there is none."""
        directory = self.train.parent
        candidates = [folder.joinpath(*parts) for folder in (directory, directory.parent)]
        return next((path for path in candidates if path.is_file()), None)


@dataclass(frozen=True)
class Study:
    """A question, and how it is answered.

    Attributes:
        title: of table and figure.
        full: the budget on two CPU cores.
        design: makes arms and columns.
        reference_score: the score of the reference arm that all are compared with; None: each
            score is compared with the same one of the reference arm.
        caption: what else a reader of the table has to know.
    """

    title: str
    full: Budget
    design: Callable[[Workplace], Design]
    reference_score: str | None = None
    caption: str = ""
