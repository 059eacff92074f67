"""Combine the members' predictions: a weighted mean of logits."""

from collections.abc import Mapping

import numpy as np


def blend(logits: Mapping[str, np.ndarray], weights: Mapping[str, float]) -> np.ndarray:
    """Weighted mean of logits, float64[P].

    Averaging logits is averaging probabilities geometrically: a member that is sure moves the
    ensemble more than one that is not (Hinton 1999, "Products of Experts").

    Args:
        logits: float64[P] a member.
        weights: a number ≥ 0 a member, not all 0; they are normalised here.
    """
    total = sum(weights[name] for name in logits)
    return sum(logits[name] * (weights[name] / total) for name in logits)
