"""How the members' logits become labels: pair by pair, or in groups."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from ..files import read_json
from .count_prior import CountPrior
from .group_rule import GroupRule
from .predicted import Predicted


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


def blend_alike(alike: Mapping[str, np.ndarray], weights: Mapping[str, float]) -> np.ndarray | None:
    """`blend` of what the bi-encoders say of candidates; None where none of them has a weight."""
    return blend(alike, weights) if any(weights[name] for name in alike) else None


@dataclass(frozen=True)
class Decision:
    """How member logits become labels: 1 where their blend exceeds `threshold` (a logit).

    Groups are decided by a rule of their own, on the same blend and on that of what the
    `bi_encoders` among the members say of candidates.
    """

    weights: dict[str, float]
    threshold: float
    groups: GroupRule = GroupRule()
    bi_encoders: tuple[str, ...] = ()

    def decide(self, logits: Mapping[str, np.ndarray]) -> np.ndarray:
        """Labels int64[P], 0 or 1, pair by pair."""
        return (blend(logits, self.weights) > self.threshold).astype(np.int64)

    def decide_groups(self, table: Predicted) -> np.ndarray:
        """Labels int64[P], 0 or 1: groups together, all other pairs one by one."""
        logits, alike = blend(table.logits, self.weights), blend_alike(table.alike, self.weights)
        return self.groups.decide(table.frame, logits, alike, self.decide(table.logits))

    @classmethod
    def read(cls, path: Path) -> "Decision":
        """The decision that `tune.write_decision` has written."""
        content: dict[str, Any] = read_json(path)
        rule = content["groups"]
        counts = {int(size): counted for size, counted in rule["prior"]["counts"].items()}
        groups = GroupRule(**rule | {"prior": CountPrior(counts)})
        return cls(**content | {"groups": groups, "bi_encoders": tuple(content["bi_encoders"])})
