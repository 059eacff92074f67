"""Peak memory of training, each library in a process of its own."""

from pathlib import Path

import pandas as pd
import torch
from accelerate import PartialState

from ...step import peak_memory_gb
from .ours import Ours
from .scale import Bench
from .turns import OURS, THEIRS, Act, in_processes


def training_memory(bench: Bench) -> dict[str, dict[str, float]]:
    """GB (10⁹ bytes) at the highest, by architecture and precision, then by library.

    On a CUDA GPU that is what PyTorch has allocated there, otherwise the resident memory of the
    process, all that Python needs included.
    """
    kinds = [kind for kind in bench.scale.memory if kind[1] in bench.precisions]
    data = (bench.directory, bench.frame, bench.scale.train_pairs)
    tasks = [(library, *kind, *data) for kind in kinds for library in (OURS, THEIRS)]
    peaks = iter(in_processes(_train, tasks))
    return {", ".join(kind): {OURS: next(peaks), THEIRS: next(peaks)} for kind in kinds}


def _train(
    library: str,
    architecture: str,
    precision: str,
    directory: Path,
    frame: pd.DataFrame,
    pairs: int,
) -> float:
    if library == OURS:
        act: Act = Ours.load(architecture, directory.name, frame, directory.parent).train
    else:
        from .theirs import THEIR  # this project does not pay for the library's memory

        act = THEIR[architecture](directory).train
    act(frame[:pairs], precision)
    return peak_gb()


def peak_gb() -> float:
    """Peak of this process so far, in GB, of the memory that training fills first."""
    if PartialState().device.type == "cuda":
        return torch.cuda.max_memory_allocated() / 1e9
    return peak_memory_gb()
