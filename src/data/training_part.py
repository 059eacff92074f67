"""What one fold is trained on: the other folds' rows and what may be derived from them.

Nothing that a score is measured on may leak in: no row of the fold itself (whole components are
held out), no pair of dev or test in any spelling, and, from outside or by derivation, no further
question of the fold, dev or test.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from ..config import AugmentConfig
from .audit import new_question_rows
from .augment import augment
from .graph import pair_keys, wording
from .pairs import read_pairs, write_pairs


def write_training_part(
    tables: Mapping[str, Path], folds: Path, fold: int, settings: AugmentConfig, folder: Path
) -> None:
    """Write train.csv, the `training_part` of a fold; `tables` are by role, `folds` int64[P]."""
    frame = {role: read_pairs(path, labelled=role != "test").frame for role, path in tables.items()}
    evaluation = [frame[role] for role in ("dev", "test") if role in frame]
    fold_of, external = np.load(folds, allow_pickle=False), frame.get("external")
    part = training_part(frame["train"], fold_of, fold, evaluation, external, settings)
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
    held_out = pd.concat([train[folds == fold], *evaluation])
    respelled = set(pair_keys(held_out, wording))
    original = train[folds != fold]
    is_free = [pair not in respelled for pair in pair_keys(original, wording)]
    original = original[is_free].reset_index(drop=True)
    part = augment(original, config, config.seed + fold, set(pair_keys(held_out)))
    if external is None:
        return part
    more = external[new_question_rows(held_out, external)]
    named = more.assign(source="external", id="external-" + more["id"])
    return pd.concat([part, named], ignore_index=True)
