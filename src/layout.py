"""Where a run keeps its files, and how they are read back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


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

    def training_part_file(self, fold: int) -> Path:
        """The pairs that the models of a fold are trained on."""
        return self.work / "training-part" / f"fold{fold}" / "train.csv"

    def fold_model(self, member: str, fold: int) -> Path:
        """The folder of one member's weights, trained on one fold's training part."""
        return self.work / "train" / member / f"fold{fold}"

    @property
    def members_and_folds(self) -> list[tuple[str, int]]:
        """Every fold model by its member and fold."""
        return [(name, fold) for name in self.members for fold in range(self.folds)]

    @property
    def fold_models(self) -> list[Path]:
        """The folders of all weights."""
        return [self.fold_model(name, fold) for name, fold in self.members_and_folds]

    def weights_file(self, member: str, fold: int) -> Path:
        """The weights of one member on one fold."""
        return self.fold_model(member, fold) / "model.safetensors"

    def logits_file(self, member: str, fold: int, role: str) -> Path:
        """float64[P]: logits of "oof" (the fold's own rows), "dev" or "test" by a fold's model.

        Those of its own rows come with the weights, which were chosen by them.
        """
        if role == "oof":
            return self.fold_model(member, fold) / "oof.npy"
        return self.work / "predict" / member / f"fold{fold}" / role / "logits.npy"

    def logits_files(self, role: str) -> list[Path]:
        """The logits of all members and folds."""
        return [self.logits_file(name, fold, role) for name, fold in self.members_and_folds]

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
        from .data.pairs import read_pairs

        path = self.table_file(role)
        return read_pairs(path, labelled=role != "test").frame if path.is_file() else None

    def train(self) -> pd.DataFrame:
        """The pair frame of all folds."""
        from .data.pairs import read_pairs

        return read_pairs(self.table_file("train"), labelled=True).frame

    def fold_numbers(self) -> np.ndarray:
        """int64[P]."""
        return _load(self.folds_file)

    def out_of_fold(self) -> dict[str, np.ndarray]:
        """Logits float64[P] a member; every row by the model that did not train on it."""
        import numpy as np

        folds = self.fold_numbers()
        logits = {}
        for name in self.members:
            values = np.empty(len(folds))
            for fold in range(self.folds):
                values[folds == fold] = _load(self.logits_file(name, fold, "oof"))
            logits[name] = values
        return logits

    def unseen(self, role: str) -> dict[str, np.ndarray]:
        """Logits float64[P] a member of dev or test: the mean over the folds' models."""
        import numpy as np

        return {
            name: np.mean(
                [_load(self.logits_file(name, fold, role)) for fold in range(self.folds)], axis=0
            )
            for name in self.members
        }


def _load(path: Path) -> np.ndarray:
    import numpy as np

    return np.load(path, allow_pickle=False)
