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

    Components (over `wording`) stay whole. Label and category are spread as evenly as that allows.

    Returns:
        int64 [rows]: the fold that holds the row out, 0 .. folds-1; none is without a row.

    Raises:
        UserError: fewer components than folds.
    """
    component = components(frame, key=wording)
    found = len(np.unique(component))
    if found < folds:
        remedy = f"Set split.folds={found}" if found >= 2 else "Collect more questions"
        raise UserError(
            f"The training pairs fall into {found} group(s) of connected questions, too few for "
            f"{folds} folds: pairs that share a question must stay in one fold. {remedy}, or add "
            "pairs whose questions occur nowhere else."
        )
    strata = _strata(frame, folds)
    fold = np.empty(len(frame), dtype=np.int64)
    # A few large components can outweigh the rest so far that the first leaves a fold without any.
    for method in (StratifiedGroupKFold, GroupKFold):
        splitter = method(folds, shuffle=True, random_state=seed)
        with warnings.catch_warnings():
            # A stratum that is rarer than the folds cannot be spread over them; that is no news.
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            for index, (_, validation) in enumerate(splitter.split(component, strata, component)):
                fold[validation] = index
        if len(np.unique(fold)) == folds:
            break
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
