"""A pair table with all that the members say of it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..layout import Layout
from .groups import candidate_rows


@dataclass(frozen=True)
class Predicted:
    """A pair table and its predictions.

    Attributes:
        frame: pair frame of P rows.
        logits: float64[P] a member.
        alike: float64[M] a bi-encoder: logits of the frame's M `candidate_pairs`.
    """

    frame: pd.DataFrame
    logits: Mapping[str, np.ndarray]
    alike: Mapping[str, np.ndarray]

    @classmethod
    def out_of_fold(cls, layout: Layout) -> "Predicted":
        """The training rows, each by the fold models that were not trained on it."""
        frame, folds = layout.train(), layout.fold_numbers()
        of_candidates = folds[candidate_rows(frame)[:, 0]]  # components keep a group in one fold
        alike = layout.out_of_fold("oof-candidates", of_candidates)
        return cls(frame, layout.out_of_fold("oof", folds), alike)

    @classmethod
    def unseen(cls, layout: Layout, role: str) -> "Predicted":
        """Dev or test, by the mean of all fold models."""
        frame = layout.table(role)
        return cls(frame, layout.unseen(role), layout.unseen(f"{role}-candidates"))

    def part(self, rows: np.ndarray) -> "Predicted":
        """The rows of a mask, bool[P], that parts no group."""
        pairs = rows[candidate_rows(self.frame)[:, 0]]
        return Predicted(
            self.frame[rows].reset_index(drop=True),
            {name: values[rows] for name, values in self.logits.items()},
            {name: values[pairs] for name, values in self.alike.items()},
        )
