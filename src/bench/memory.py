"""Peak memory of training, each library in a process of its own."""

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from ..step import peak_memory_gb
from .own import Own
from .turns import OURS, THEIRS


def training_memory(
    architecture: str, encoder: str, frame: pd.DataFrame, pairs: int, precision: str,
    pretrained: Path,
) -> dict[str, float]:  # fmt: skip
    """GB of resident memory at the highest, by library, all that Python needs included.

    Args:
        frame: all training pairs, of which the first `pairs` are trained on.
        pretrained: folder in which `encoder` has been made.
    """
    arguments = (architecture, encoder, frame, pairs, precision, pretrained)
    return {OURS: _in_process(_own, arguments), THEIRS: _in_process(_rival, arguments)}


def _in_process(train: Callable, arguments: tuple) -> float:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(train, arguments)


def _own(
    architecture: str, encoder: str, frame: pd.DataFrame, pairs: int, precision: str,
    pretrained: Path,
) -> float:  # fmt: skip
    Own.load(architecture, encoder, frame, pretrained).train(frame[:pairs], precision)
    return peak_memory_gb()


def _rival(
    architecture: str, encoder: str, frame: pd.DataFrame, pairs: int, precision: str,
    pretrained: Path,
) -> float:  # fmt: skip
    from .rival import load_rival

    load_rival(architecture, pretrained / encoder).train(frame[:pairs], precision)
    return peak_memory_gb()
