"""Peak memory of training, each library in a process of its own."""

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch
from accelerate import PartialState

from ...step import peak_memory_gb
from .ours import Own
from .turns import OURS, THEIRS


def training_memory(
    architecture: str,
    encoder: str,
    frame: pd.DataFrame,
    pairs: int,
    precision: str,
    pretrained: Path,
) -> dict[str, float]:
    """GB (10⁹ bytes) at the highest, by library.

    On a CUDA GPU that is what PyTorch has allocated there, otherwise the resident memory of the
    process, all that Python needs included.

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
    architecture: str,
    encoder: str,
    frame: pd.DataFrame,
    pairs: int,
    precision: str,
    pretrained: Path,
) -> float:
    Own.load(architecture, encoder, frame, pretrained).train(frame[:pairs], precision)
    return peak_gb()


def _rival(
    architecture: str,
    encoder: str,
    frame: pd.DataFrame,
    pairs: int,
    precision: str,
    pretrained: Path,
) -> float:
    from .theirs import load_rival

    load_rival(architecture, pretrained / encoder).train(frame[:pairs], precision)
    return peak_gb()


def peak_gb() -> float:
    """Peak of this process so far, in GB, of the memory that training fills first."""
    if PartialState().device.type == "cuda":
        return torch.cuda.max_memory_allocated() / 1e9
    return peak_memory_gb()
