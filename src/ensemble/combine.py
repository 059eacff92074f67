"""How the members' logits become a label: their weighted mean against a threshold."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np

from ..files import read_json


def blend(logits: Mapping[str, np.ndarray], weights: Mapping[str, float]) -> np.ndarray:
    """Weighted mean of logits, float64[P].

    Averaging logits is averaging probabilities geometrically: a member that is sure moves the
    ensemble more than one that is not (Hinton 1999, "Products of Experts").

    Args:
        logits: float64[P] a member.
        weights: a number ≥ 0 a member, not all 0; they are normalised here.
    """
    total = sum(weights[name] for name in logits)
    return reduce(np.add, (logits[name] * (weights[name] / total) for name in logits))


@dataclass(frozen=True)
class Decision:
    """How member logits become a label: 1 where their blend exceeds `threshold` (a logit)."""

    weights: dict[str, float]
    threshold: float

    def decide(self, logits: Mapping[str, np.ndarray]) -> np.ndarray:
        """Labels int64[P], 0 or 1."""
        return (blend(logits, self.weights) > self.threshold).astype(np.int64)

    @classmethod
    def read(cls, path: Path) -> "Decision":
        """The decision that `tune.write_decision` has written."""
        return cls(**read_json(path))
