"""How many pairs of a group are labelled 1: what the labelled groups say of it beforehand."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from math import comb

import numpy as np
import pandas as pd

from .groups import groups_by_size

_UNSEEN = 1.0  # groups' worth of belief in what blocks of the commonest size would make


@dataclass(frozen=True)
class CountPrior:
    """How many pairs of a group are labelled 1.

    Attributes:
        counts: size n → n + 1 numbers, how many labelled groups have k = 0, 1, …, n.
    """

    counts: Mapping[int, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, frame: pd.DataFrame) -> "CountPrior":
        """Count the groups of a labelled pair frame."""
        labels = frame["label"].to_numpy()
        found = {}
        for rows in groups_by_size(frame):
            size = rows.shape[1]
            found[size] = np.bincount(labels[rows].sum(axis=1), minlength=size + 1).tolist()
        return cls(found)

    @cached_property
    def unit(self) -> int:
        """The size with the most groups: five in the competition's files."""
        return max(self.counts, key=lambda size: (sum(self.counts[size]), -size), default=2)

    def share(self, size: int) -> np.ndarray:
        """float64[n + 1]: the probability of each k in a group of n = `size` pairs.

        What was counted, and one group's worth of what blocks of `unit` pairs would make: so a size
        that was never seen has a share per block, and no count is impossible.
        """
        counted = np.array(self.counts.get(size, [0] * (size + 1)))
        return (counted + _UNSEEN * self._built(size)) / (counted.sum() + _UNSEEN)

    def _built(self, size: int) -> np.ndarray:
        """The shares in `size` pairs drawn from as few blocks of `unit` pairs as hold them."""
        unit = self.unit
        block = np.array(self.counts.get(unit, [0] * (unit + 1))) + _UNSEEN / (unit + 1)
        whole = reduce(np.convolve, [block / block.sum()] * -(-size // unit))
        total = len(whole) - 1
        drawn = [
            [comb(k, n) * comb(total - k, size - n) / comb(total, size) for k in range(total + 1)]
            for n in range(size + 1)
        ]
        return np.array(drawn) @ whole
