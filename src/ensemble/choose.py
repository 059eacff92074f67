"""Pair by pair or in groups: which of the two decisions of a table is delivered."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from ..config import EnsembleConfig
from .groups import MOST, group_sizes

# Sizes with at least this share of train's pairs count as the annotators'.
_COMMON = 0.01
# From this share of a table's pairs on, its sizes look like train's. Measured out of fold by
# damaging groups: above it, deciding them together never lost (docs/groups.md).
_ALIKE = 0.25

Way = Literal["pairs", "groups"]


@dataclass(frozen=True)
class Choice:
    """The way that is taken, and why, in one line."""

    way: Way
    why: str


def choose(
    setting: EnsembleConfig, train: pd.DataFrame, cross_fitted: np.ndarray, table: pd.DataFrame
) -> Choice:
    """How to decide a table.

    Args:
        train: labelled pair frame of P rows.
        cross_fitted: int64[2, P], labels of its rows pair by pair and in groups.
        table: the pair frame to be decided.
    """
    if setting.decide != "auto":
        return Choice(setting.decide, f"ensemble.decide={setting.decide}")
    right = (cross_fitted == train["label"].to_numpy()).mean(axis=1)
    gain = f"cross-fitted {right[1]:.2%} in groups, {right[0]:.2%} pair by pair"
    if right[1] <= right[0]:
        return Choice("pairs", gain)
    share, sizes = share_in_common_sizes(train, table)
    named = ", ".join(map(str, sizes)) or "none"
    test = (
        f"test of sizes: {share:.0%} of the pairs are in groups of a size common in train ({named})"
    )
    return Choice("groups" if share >= _ALIKE else "pairs", f"{test}; {_ALIKE:.0%} needed; {gain}")


def share_in_common_sizes(train: pd.DataFrame, table: pd.DataFrame) -> tuple[float, list[int]]:
    """The share of a table's pairs in groups of a size that is common in train; these sizes."""
    sizes = group_sizes(train)
    common = [n for n in range(2, MOST + 1) if np.mean(sizes == n) >= _COMMON]
    return float(np.isin(group_sizes(table), common).mean()), common
