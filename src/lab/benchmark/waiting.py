"""What a user waits for besides training: the command line's start, and the stages of a run."""

import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from ...config import ROOT, load_config
from ...data.prepare import SAMPLE
from ...files import read_json
from ...pipeline import STAGES, Pipeline
from ...step import MARKER
from .turns import Spread, alternate, now


def start_up(rounds: int) -> dict[str, float]:
    """Seconds of `python -m src --help`."""

    def run(_: int) -> float:
        started = now()
        subprocess.run(
            [sys.executable, "-m", "src", "--help"], cwd=ROOT, check=True, capture_output=True
        )
        return now() - started

    return asdict(Spread.of(alternate({"--help": run}, rounds, "start-up")["--help"]))


def stage_times(pretrained: Path, overrides: list[str]) -> dict[str, float]:
    """Seconds of every stage of the profile `tiny` on the sample, in a folder of their own."""
    with tempfile.TemporaryDirectory() as folder:
        places = [
            f"data.dir={SAMPLE}",
            f"paths.work={folder}/work",
            f"paths.submissions={folder}/submissions",
            f"paths.pretrained={pretrained}",
        ]
        pipeline = Pipeline(load_config("tiny", [*places, *overrides]))
        pipeline.run()
        return {
            stage: round(sum(_seconds(step.folder) for step in pipeline.steps(stage)), 2)
            for stage in STAGES
        }


def _seconds(folder: Path) -> float:
    return read_json(folder / MARKER)["seconds"]
