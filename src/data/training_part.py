"""What one fold is trained on: the other folds' rows and what may be derived from them.

Nothing that a score is measured on may leak in: no row of the fold itself (whole components are
held out), no pair of dev or test in any spelling, and, from outside or by derivation, no further
question of the fold, dev or test.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from ..config import AugmentConfig
from .augment import augment
from .graph import pair_key, wording
from .pairs import read_pairs, write_pairs


def write_training_part(
    tables: Mapping[str, Path], folds: Path, fold: int, settings: AugmentConfig, folder: Path
) -> None:
    """Write train.csv, the `training_part` of a fold.

    Args:
        tables: pair tables by role; "train", and what there is of dev, test and external.
        folds: file with int64[P], the fold of every row of train.
    """
    frames = {
        role: read_pairs(path, labelled=role != "test").frame for role, path in tables.items()
    }
    part = training_part(
        frames["train"],
        np.load(folds, allow_pickle=False),
        fold,
        [frames[role] for role in ("dev", "test") if role in frames],
        frames.get("external"),
        settings,
    )
    write_pairs(part, folder / "train.csv")


def training_part(
    train: pd.DataFrame,
    folds: np.ndarray,
    fold: int,
    evaluation: list[pd.DataFrame],
    external: pd.DataFrame | None,
    config: AugmentConfig,
) -> pd.DataFrame:
    """The training part of `fold`, with a column `source`: original, closure, entity, external.

    Args:
        train: pair frame of all folds; `folds` is int64[P].
        evaluation: pair frames that scores or submissions are made of (dev, test).
        external: more labelled pairs, from elsewhere.
    """
    held_out = [train[folds == fold], *evaluation]
    pairs = {pair_key(*queries) for frame in held_out for queries in _queries(frame)}
    respelled = {_unordered(*queries) for queries in pairs}
    original = train[folds != fold]
    is_free = [_unordered(*queries) not in respelled for queries in _queries(original)]
    original = original[is_free].reset_index(drop=True)
    part = augment(original, config, config.seed + fold, pairs)
    if external is None:
        return part
    held_out_questions = {wording(q) for f in held_out for q in [*f["query1"], *f["query2"]]}
    is_new = [
        wording(first) not in held_out_questions and wording(second) not in held_out_questions
        for first, second in _queries(external)
    ]
    more = external[is_new].assign(source="external", id="external-" + external["id"])
    return pd.concat([part, more], ignore_index=True)


def _queries(frame: pd.DataFrame) -> Iterator[tuple[str, str]]:
    return zip(frame["query1"], frame["query2"], strict=True)


def _unordered(first: str, second: str) -> frozenset[str]:
    return frozenset((wording(first), wording(second)))
