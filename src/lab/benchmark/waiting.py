"""What a user waits for besides training: the command line's start, and the stages of a run."""

import subprocess
import sys
import tempfile
from functools import partial

from ...config import ROOT, load_config
from ...data.sources import SAMPLE
from ...files import read_json
from ...pipeline import STAGES, Pipeline, stage_name
from ...step import MARKER
from .scale import Bench
from .turns import Spread, alternate, spread, timed


def start_up(bench: Bench) -> Spread:
    """Seconds of `python -m src --help`."""
    command = [sys.executable, "-m", "src", "--help"]

    def run(_: int) -> float:
        call = partial(subprocess.run, command, cwd=ROOT, check=True, capture_output=True)
        return timed(call)[1]

    return spread(alternate({"--help": run}, bench.scale.rounds, "start-up")["--help"])


def stage_times(bench: Bench) -> dict[str, float]:
    """Seconds of every stage of the profile `tiny` on the sample, in a folder of their own."""
    with tempfile.TemporaryDirectory() as folder:
        places = [
            f"data.dir={SAMPLE}",
            f"paths.work={folder}/work",
            f"paths.submissions={folder}/submissions",
            f"paths.pretrained={bench.pretrained}",
        ]
        pipeline = Pipeline(load_config("tiny", [*places, *bench.scale.stages]))
        pipeline.run()
        return {
            stage_name(stage): round(
                sum(read_json(step.folder / MARKER)["seconds"] for step in stage(pipeline)), 2
            )
            for stage in STAGES
        }
