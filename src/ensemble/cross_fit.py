"""Decide every row by a decision that was tuned on the other folds.

Weights and threshold tuned on all out-of-fold predictions have seen every label, so the accuracy
of their own decisions on these rows is too good. Here the rows of fold k are decided by what was
tuned on the folds other than k: an honest estimate of the whole procedure.
"""

from collections.abc import Callable, Mapping

import numpy as np

from .combine import Decision


def cross_fitted_labels(
    logits: Mapping[str, np.ndarray],
    labels: np.ndarray,
    folds: np.ndarray,
    search: Callable[[Mapping[str, np.ndarray], np.ndarray, str], Decision],
) -> np.ndarray:
    """Labels int64[P] of all rows.

    Args:
        logits: float64[P] a member, out of fold; `labels` and `folds` are int[P].
        search: tunes on (logits, labels) of some rows; its third argument names the study.
    """
    decided = np.empty(len(labels), np.int64)
    for fold in np.unique(folds):
        inside = folds == fold
        others = {name: values[~inside] for name, values in logits.items()}
        decision = search(others, labels[~inside], f"without-fold{fold}")
        decided[inside] = decision.decide({n: values[inside] for n, values in logits.items()})
    return decided
