"""One trial as a step: made once, skipped while its settings, parts and code are the same."""

import importlib.metadata
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ....config import MemberConfig
from ....data.audit import audit
from ....files import files_in, read_json, save_array, write_json
from ....models.registry import code_of_member
from ....step import Step
from .arm import Arm, Column, Study, Trial
from .split_parts import Parts, part_files

_LIBRARIES = ("torch", "transformers", "tokenizers")
_RECORD = "trial.json"


@dataclass(frozen=True)
class Places:
    """Folders of a trial: its parts, its results, and where encoders are looked for."""

    parts: Path
    folder: Path
    pretrained: Path


@dataclass(frozen=True)
class Trained:
    """Where the trial of (arm, column, seed) is, and how it is read."""

    folder: Path

    @property
    def record(self) -> dict[str, Any]:
        """Names of the scores, facts, history and the leak audit."""
        return read_json(self.folder / _RECORD)

    def score(self, name: str) -> np.ndarray:
        """float64[P]: above 0 means "the same question"."""
        return np.load(self.folder / f"{name}.npy", allow_pickle=False)


def parts_step(study: Study, column: Column, seed: int, settings: dict, folder: Path) -> Step:
    """Writes the three parts of a column for a seed."""
    return Step(
        f"parts of '{column.name}', seed {seed}",
        folder,
        partial(_write_parts, column, seed),
        reads=column.inputs,
        settings=settings | {"column": column.name, "seed": seed},
        code=[column.divide],
    )


def _write_parts(column: Column, seed: int, folder: Path) -> None:
    column.divide(seed).write(folder)


def trial_step(study: Study, arm: Arm, seed: int, places: Places, title: str) -> Step:
    """Trains and scores one arm on one set of parts."""
    files = part_files(places.parts)
    member = MemberConfig(**arm.settings["member"])
    versions = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    return Step(
        title,
        places.folder,
        partial(_make, arm, files, seed, places.pretrained, title),
        reads=[*files.values(), *arm.inputs, *files_in(member.encoder)],
        settings={"arm": dict(arm.settings), "seed": seed, "versions": versions},
        code=[arm.make, study.design, *code_of_member(member)],
    )


def _make(
    arm: Arm, files: dict[str, Path], seed: int, pretrained: Path, title: str, folder: Path
) -> None:
    parts = Parts.read(files)
    outcome = arm.make(Trial(parts, seed, pretrained, title))
    for name, values in outcome.scores.items():
        save_array(folder / f"{name}.npy", np.asarray(values, np.float64))
    write_json(
        folder / _RECORD,
        {
            "scores": list(outcome.scores),
            "facts": {"training_pairs": len(outcome.training)} | dict(outcome.facts),
            "history": outcome.history,
            "audit": audit(outcome.training, parts.evaluation).as_dict(),
        },
    )
