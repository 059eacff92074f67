"""One trial as a step: made once, skipped while its settings, parts and code are the same."""

import importlib.metadata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ....data.graph import audit
from ....files import atomic_path, files_in, read_json, write_json
from ....step import Step
from .arm import Arm, Column, Study, Trial
from .split_parts import Parts, part_files

_CODE = (
    "models",
    "training",
    "data",
    "search/encode.py",
    "search/duplicates.py",
    "report/checks.py",
    "report/metrics.py",
    "study/bench",
)
_LIBRARIES = ("torch", "transformers", "tokenizers")
_RECORD = "trial.json"


@dataclass(frozen=True)
class Piece:
    """Where the trial of (arm, column, seed) is, and how it is read."""

    folder: Path

    @property
    def record(self) -> dict[str, Any]:
        """Names of the scores, facts, history and the leak audit."""
        return read_json(self.folder / _RECORD)

    def score(self, name: str) -> np.ndarray:
        """float64[P]: above 0 means "the same question"."""
        return np.load(self.folder / f"{name}.npy", allow_pickle=False)


def parts_step(
    study: Study, column: Column, seed: int, settings: dict[str, Any], folder: Path
) -> Step:
    """Writes the three parts of a column for a seed."""
    return Step(
        f"parts of '{column.name}', seed {seed}",
        folder,
        settings | {"column": column.name, "seed": seed},
        column.inputs,
        ["data", "study/bench/parts.py", *(f"study/{name}" for name in study.code)],
        lambda target: column.divide(seed).write(target),
    )


def trial_step(
    study: Study,
    arm: Arm,
    parts_folder: Path,
    seed: int,
    folder: Path,
    pretrained: Path,
    title: str,
) -> Step:
    """Trains and scores one arm on one set of parts."""
    files = part_files(parts_folder)

    def make(target: Path) -> None:
        parts = Parts.read(files)
        outcome = arm.make(Trial(parts, seed, pretrained, title))
        for name, values in outcome.scores.items():
            with atomic_path(target / f"{name}.npy") as temporary:
                np.save(temporary, np.asarray(values, np.float64))
        write_json(
            target / _RECORD,
            {
                "scores": list(outcome.scores),
                "facts": {"training_pairs": len(outcome.training)} | dict(outcome.facts),
                "history": outcome.history,
                "audit": audit(outcome.training, parts.evaluation).as_dict(),
            },
        )

    versions = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    return Step(
        title,
        folder,
        {"arm": dict(arm.settings), "seed": seed, "versions": versions},
        [*files.values(), *arm.inputs, *files_in(arm.settings["member"]["encoder"])],
        [*_CODE, *(f"study/{name}" for name in study.code)],
        make,
    )
