"""What tests of whole runs share: a cut of the sample, and a run in a process to be killed."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from src.data.pairs import read_pairs, write_pairs

ROOT = Path(__file__).parents[1]


def cut_sample(sample: Path, folder: Path, train: int = 240, other: int = 60) -> Path:
    """The first rows of the sample's files, as data directory of a run."""
    for role, rows in (("train", train), ("dev", other), ("test", other)):
        frame = read_pairs(sample / f"{role}.csv", labelled=role != "test").frame
        write_pairs(frame.iloc[:rows], folder / f"{role}.csv")
    return folder


def fold_files(folder: Path, training: pd.DataFrame, own: pd.DataFrame, fold: int = 0):
    """Files of one fold: what is trained on, and the fold's own rows."""
    from src.training.fold_model import FoldFiles

    files = FoldFiles(folder / "part.csv", folder / "table.csv", folder / "folds.npy", fold)
    write_pairs(training, files.part)
    write_pairs(own, files.table)
    np.save(files.folds, np.full(len(own), fold))
    return files


def settings(folder: Path, pretrained: Path) -> list[str]:
    """Overrides of the tiny profile for a run of seconds that keeps everything in `folder`."""
    return [
        f"data.dir={folder / 'data'}",
        f"paths.work={folder / 'work'}",
        f"paths.submissions={folder / 'submissions'}",
        f"paths.pretrained={pretrained}",
        "split.folds=2",
        "training.epochs=1",
        # Enough for answers of both kinds.
        "members.siamese-fgm.training.epochs=2",
        "members.siamese-fgm.training.batch_pairs=8",
        "tune.trials=8",
    ]


def command(log: Path, arguments: list[str]) -> None:
    """`python -m src ARGUMENTS` in this process, its output in the file `log`."""
    from src.__main__ import entry

    # A shell's background job starts with Ctrl-C ignored, and its children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.argv = ["src", *arguments]
    entry()
