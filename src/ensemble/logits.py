"""Weights × table → logits."""

from functools import lru_cache
from pathlib import Path

import numpy as np

from ..data.pairs import read_pairs
from ..files import save_array, sha256
from ..training.fold_model import WEIGHTS, FoldModel, load_fold_model
from .groups import candidate_pairs


def write_logits(model: Path, pretrained: Path, table: Path, folder: Path) -> None:
    """Write logits.npy, float64[P], of a pair table by the fold model in the folder `model`."""
    network = _loaded(model, pretrained, sha256(model / WEIGHTS))
    frame = read_pairs(table, labelled=False).frame
    save_array(folder / "logits.npy", network.predict(frame))


def write_candidate_logits(
    model: Path, pretrained: Path, table: Path, fold: tuple[Path, int] | None, folder: Path
) -> None:
    """Write logits.npy, float64[M], of a pair table's `candidate_pairs`.

    Args:
        fold: the file of the rows' folds and a number: only these rows of the table.
    """
    network = _loaded(model, pretrained, sha256(model / WEIGHTS))
    frame = read_pairs(table, labelled=False).frame
    if fold is not None:
        frame = frame[np.load(fold[0], allow_pickle=False) == fold[1]].reset_index(drop=True)
    pairs = candidate_pairs(frame)
    save_array(folder / "logits.npy", network.predict(pairs) if len(pairs) else np.zeros(0))


@lru_cache(maxsize=1)  # a model predicts several tables in a row
def _loaded(model: Path, pretrained: Path, weights: str) -> FoldModel:
    return load_fold_model(model, pretrained)
