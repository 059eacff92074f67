"""Decide every row by a decision that was tuned on the other folds.

What is tuned on all out-of-fold predictions has seen every label, so the accuracy of its own
decisions on these rows is too good. Here the rows of fold k are decided by weights, threshold and
group rule that were tuned on the folds other than k: an honest estimate of the whole procedure.
"""

from collections.abc import Callable

import numpy as np

from .combine import Decision
from .predicted import Predicted


def cross_fitted_labels(
    train: Predicted, folds: np.ndarray, tune: Callable[[Predicted, str], Decision]
) -> np.ndarray:
    """Labels int64[2, P] of all rows: pair by pair, and in groups.

    Args:
        train: out-of-fold predictions.
        folds: int[P]; a group lies in one fold.
        tune: decides on some rows; its second argument names the studies.
    """
    decided = np.empty((2, len(folds)), np.int64)
    for fold in np.unique(folds):
        inside = folds == fold
        decision, own = tune(train.part(~inside), f"without-fold{fold}"), train.part(inside)
        decided[:, inside] = decision.decide(own.logits), decision.decide_groups(own)
    return decided
