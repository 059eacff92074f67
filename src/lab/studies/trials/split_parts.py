"""What a trial is trained on, tuned on and scored on: three parts that share no question."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pandas as pd

from ....data.folds import assign_folds
from ....data.graph import wording
from ....data.pairs import read_pairs, write_pairs
from .budget import FIRST_SEED, Budget

EVALUATION_FOLDS = 3  # one of them is the evaluation part
VALIDATION_FOLDS = 8  # one of them, of the rest, is the validation part
VALIDATION_PAIRS = 400


@dataclass(frozen=True)
class Parts:
    """Pair frames.

    Attributes:
        training: what the weights are fitted to.
        validation: chooses the epoch and, where a score has one, the threshold.
        evaluation: scored once, by the finished trial; the same rows for every seed.
    """

    training: pd.DataFrame
    validation: pd.DataFrame
    evaluation: pd.DataFrame

    def write(self, folder: Path) -> None:
        """Write training.csv, validation.csv and evaluation.csv."""
        for name, path in part_files(folder).items():
            write_pairs(getattr(self, name), path)

    @classmethod
    def read(cls, files: Mapping[str, Path]) -> "Parts":
        """Read what `write` has written."""
        return cls(**{name: read_pairs(path, labelled=True).frame for name, path in files.items()})


def part_files(folder: Path) -> dict[str, Path]:
    """Name of a part → its file."""
    return {field.name: folder / f"{field.name}.csv" for field in fields(Parts)}


def exploring_folds(train: pd.DataFrame) -> np.ndarray:
    """int64[P]: folds on which settings are chosen, other ones than those of a headline's score."""
    return assign_folds(train, EVALUATION_FOLDS, seed=2020)


def hold_out(train: pd.DataFrame, budget: Budget, seed: int) -> Parts:
    """One fold of the official training file for evaluation, the rest for training.

    dev takes no part: a study decides what the pipeline does, and dev is for the final score.
    """
    is_evaluation = exploring_folds(train) == 0
    evaluation = sample_groups(train[is_evaluation], budget.evaluation, FIRST_SEED)
    return divide(train[~is_evaluation], evaluation, budget, seed)


def divide(rest: pd.DataFrame, evaluation: pd.DataFrame, budget: Budget, seed: int) -> Parts:
    """Take a validation part off `rest`, by components, and a sample of the others to train on."""
    rest = rest.reset_index(drop=True)
    is_validation = assign_folds(rest, VALIDATION_FOLDS, seed) == 0
    return Parts(
        sample_groups(rest[~is_validation], budget.pairs, seed),
        sample_groups(rest[is_validation], VALIDATION_PAIRS, seed),
        evaluation.reset_index(drop=True),
    )


def sample_groups(frame: pd.DataFrame, pairs: int | None, seed: int) -> pd.DataFrame:
    """About `pairs` rows of a pair frame, in its order: whole groups that share a first question.

    The annotators wrote such a group together, near misses included, so that a sample of single
    rows would be easier than the data. The last group drawn is left out when it goes beyond.
    """
    if pairs is None or len(frame) <= pairs:
        return frame.reset_index(drop=True)
    codes, groups = pd.factorize(frame["query1"].map(wording))
    sizes = np.bincount(codes)
    order = np.random.default_rng(seed).permutation(len(groups))
    total = np.cumsum(sizes[order])
    chosen = order[total <= max(pairs, total[0])]
    return frame[np.isin(codes, chosen)].reset_index(drop=True)
