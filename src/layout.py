"""Where a run keeps its files, and how they are read back."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from .data.pairs import read_pairs

ROLES = ("train", "dev", "test", "external")


@dataclass(frozen=True)
class Layout:
    """The folders of one run.

    Attributes:
        work: everything that can be made again.
        results: what the run delivers.
        members: names of the ensemble's members.
        folds: number of folds.
    """

    work: Path
    results: Path
    members: tuple[str, ...]
    folds: int

    def table_file(self, role: str) -> Path:
        """A validated pair table: train, dev, test or external."""
        return self.work / "prepare" / f"{role}.csv"

    @property
    def facts_file(self) -> Path:
        """Hashes, counts and the leak audit of the data."""
        return self.work / "prepare" / "data.json"

    @property
    def folds_file(self) -> Path:
        """int64[P]: the fold of every training row."""
        return self.work / "split" / "folds.npy"

    def part_file(self, fold: int) -> Path:
        """The augmented training part of a fold."""
        return self.work / "augment" / f"fold{fold}" / "train.csv"

    def piece(self, member: str, fold: int) -> Path:
        """The folder of one member's training on one fold."""
        return self.work / "train" / member / f"fold{fold}"

    def weights_file(self, member: str, fold: int) -> Path:
        """The weights of one member trained on one fold."""
        return self.piece(member, fold) / "model.safetensors"

    @property
    def pieces(self) -> list[Path]:
        """The folders of all training."""
        return [self.piece(name, fold) for name in self.members for fold in range(self.folds)]

    @property
    def decision_file(self) -> Path:
        """Tuned weights and threshold."""
        return self.work / "tune" / "decision.json"

    @property
    def cross_fitted_file(self) -> Path:
        """int64[P]: a label for every training row, decided by what other folds tuned."""
        return self.work / "tune" / "cross_fitted.npy"

    def table(self, role: str) -> pd.DataFrame | None:
        """A pair frame, None where the run has no such file."""
        path = self.table_file(role)
        if not path.is_file():
            return None
        return read_pairs(path, labelled=role != "test").frame

    def fold_numbers(self) -> np.ndarray:
        """int64[P]."""
        return np.load(self.folds_file, allow_pickle=False)

    def out_of_fold(self) -> dict[str, np.ndarray]:
        """Logits float64[P] a member; every row by the model that did not train on it."""
        folds = self.fold_numbers()
        logits = {}
        for name in self.members:
            values = np.empty(len(folds))
            for fold in range(self.folds):
                values[folds == fold] = self._logits(name, fold, "oof")
            logits[name] = values
        return logits

    def unseen(self, role: str) -> dict[str, np.ndarray]:
        """Logits float64[P] a member of dev or test: the mean over the folds' models."""
        return {
            name: np.mean([self._logits(name, fold, role) for fold in range(self.folds)], axis=0)
            for name in self.members
        }

    def _logits(self, member: str, fold: int, name: str) -> np.ndarray:
        return np.load(self.piece(member, fold) / f"{name}.npy", allow_pickle=False)
