"""Where a run keeps its files, and how they are read back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .files import read_json

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
        bi_encoders: those of them that are bi-encoders.
        folds: number of folds.
    """

    work: Path
    results: Path
    members: tuple[str, ...]
    bi_encoders: tuple[str, ...]
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

    def learned_nothing(self) -> dict[str, tuple[str, list[int]]]:
        """Members that learned nothing on some folds: over which constant answer, and the folds."""
        found: dict[str, tuple[str, list[int]]] = {}
        for name, fold in self.members_and_folds:
            record = read_json(self.fold_model(name, fold) / "member.json")
            if record["learned_nothing_over"]:
                found.setdefault(name, (record["learned_nothing_over"], []))[1].append(fold)
        return found

    @property
    def plan_file(self) -> Path:
        """What training was expected to take, by member."""
        return self.work / "train" / "plan.json"

    def logits_file(self, member: str, fold: int, role: str) -> Path:
        """Logits by a fold's model, float64.

        Args:
            role: "oof" (the fold's own rows; they come with the weights, which were chosen by
                them), "dev", "test", or one of these with "-candidates": what a bi-encoder says of
                the table's `candidate_pairs`.
        """
        if role == "oof":
            return self.fold_model(member, fold) / "oof.npy"
        return self.work / "predict" / member / f"fold{fold}" / role / "logits.npy"

    def predictors(self, role: str) -> tuple[str, ...]:
        """The members that predict a role."""
        return self.bi_encoders if role.endswith("-candidates") else self.members

    def logits_files(self, *roles: str) -> list[Path]:
        """The logits of all members and folds."""
        return [
            self.logits_file(name, fold, role)
            for role in roles
            for name in self.predictors(role)
            for fold in range(self.folds)
        ]

    @property
    def decision_file(self) -> Path:
        """Tuned weights and threshold."""
        return self.work / "tune" / "decision.json"

    @property
    def cross_fitted_file(self) -> Path:
        """int64[2, P]: labels for every training row, decided by what the other folds tuned.

        The first row of it decides pair by pair, the second one in groups.
        """
        return self.work / "tune" / "cross_fitted.npy"

    @property
    def choice_file(self) -> Path:
        """How the test file was decided, and why."""
        return self.work / "submit" / "choice.json"

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

    def out_of_fold(self, role: str, folds: np.ndarray) -> dict[str, np.ndarray]:
        """Logits float64[N] a member: item i by the model of fold `folds[i]`, which saw it not.

        Args:
            role: "oof" or "oof-candidates".
        """
        import numpy as np

        logits = {}
        for name in self.predictors(role):
            values = np.empty(len(folds))
            for fold in range(self.folds):
                values[folds == fold] = _load(self.logits_file(name, fold, role))
            logits[name] = values
        return logits

    def unseen(self, role: str) -> dict[str, np.ndarray]:
        """Logits float64[N] a member of what no model has seen: the mean over all fold models."""
        import numpy as np

        return {
            name: np.mean(
                [_load(self.logits_file(name, fold, role)) for fold in range(self.folds)], axis=0
            )
            for name in self.predictors(role)
        }


def _load(path: Path) -> np.ndarray:
    import numpy as np

    return np.load(path, allow_pickle=False)
