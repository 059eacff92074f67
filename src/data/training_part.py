"""What one fold is trained on: the other folds' rows and what may be derived from them.

Nothing that a score is measured on may leak in: no row of the fold itself (whole components are
held out), no pair of dev, and no external or derived pair with a question of the fold, dev or test.
"""

import numpy as np
import pandas as pd

from ..config import AugmentConfig
from .augment import augment
from .graph import pair_key, wording


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
    pairs = {
        pair_key(*queries)
        for frame in held_out
        for queries in zip(frame["query1"], frame["query2"], strict=True)
    }
    original = train[folds != fold]
    keys = map(pair_key, original["query1"], original["query2"])
    original = original[[key not in pairs for key in keys]].reset_index(drop=True)
    part = augment(original, config, config.seed + fold, pairs)
    if external is None:
        return part
    held_out_questions = {wording(q) for f in held_out for q in [*f["query1"], *f["query2"]]}
    is_new = [
        wording(first) not in held_out_questions and wording(second) not in held_out_questions
        for first, second in zip(external["query1"], external["query2"], strict=True)
    ]
    more = external[is_new].assign(source="external", id="external-" + external["id"])
    return pd.concat([part, more], ignore_index=True)
