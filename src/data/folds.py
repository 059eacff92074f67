"""Folds for cross-validation: whole components of the question graph, stratified."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

from ..config import SplitConfig
from ..errors import UserError
from ..files import save_array
from .graph import components, wording
from .pairs import read_pairs


def write_folds(table: Path, settings: SplitConfig, folder: Path) -> None:
    """Write folds.npy, int64[P]: the fold of every row of a pair table."""
    frame = read_pairs(table, labelled=True).frame
    save_array(folder / "folds.npy", assign_folds(frame, settings.folds, settings.seed))


def assign_folds(frame: pd.DataFrame, folds: int, seed: int) -> np.ndarray:
    """Deal the pairs into folds so that no question, in any spelling, is in two of them.

    Components (over `wording`) stay whole. Label and category are spread as evenly as whole
    components allow (scikit-learn's StratifiedGroupKFold).

    Args:
        frame: labelled pair frame.
        folds: number of folds, at least 2.
        seed: decides among equally good deals; the same seed gives the same folds.

    Returns:
        int64 [rows]: the fold whose validation part the row belongs to, 0 .. folds-1; every
        fold has at least one row.

    Raises:
        UserError: fewer components than folds.
    """
    groups = components(frame, key=wording)
    found = len(np.unique(groups))
    if found < folds:
        remedy = f"Set split.folds={found}" if found >= 2 else "Collect more questions"
        raise UserError(
            f"The training pairs fall into {found} group(s) of connected questions, too few for "
            f"{folds} folds: pairs that share a question must stay in one fold. {remedy}, or add "
            "pairs whose questions occur nowhere else."
        )
    splitter = StratifiedGroupKFold(n_splits=folds, shuffle=True, random_state=seed)
    fold = np.empty(len(frame), dtype=np.int64)
    with warnings.catch_warnings():
        # A stratum that is rarer than the folds cannot be spread over them; that is no news.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        parts = splitter.split(groups, _strata(frame, folds), groups)
        for index, (_, validation) in enumerate(parts):
            fold[validation] = index
    if len(np.unique(fold)) < folds:
        # A few large components can outweigh the rest so far that a fold is left without any.
        parts = GroupKFold(folds, shuffle=True, random_state=seed).split(groups, groups=groups)
        for index, (_, validation) in enumerate(parts):
            fold[validation] = index
    return fold


def _strata(frame: pd.DataFrame, folds: int) -> np.ndarray:
    """Label and category of each row; label alone where the category is absent or too rare."""
    label = frame["label"].astype(str)
    fine = label + "/" + frame["category"]
    common = (frame["category"] != "") & (fine.groupby(fine).transform("size") >= folds)
    strata = fine.where(common, label)
    # scikit-learn refuses to split when every stratum is rarer than the folds.
    too_small = strata.value_counts().max() < folds
    return np.zeros(len(frame), dtype=np.int64) if too_small else strata.to_numpy(dtype=str)
