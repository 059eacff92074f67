"""Weights × table → logits."""

from functools import lru_cache
from pathlib import Path

from ..data.pairs import read_pairs
from ..files import save_array, sha256
from ..training.fold_model import WEIGHTS, FoldModel, load_fold_model


def write_logits(model: Path, pretrained: Path, table: Path, folder: Path) -> None:
    """Write logits.npy, float64[P], of a pair table by the fold model in the folder `model`."""
    network = _loaded(model, pretrained, sha256(model / WEIGHTS))
    frame = read_pairs(table, labelled=False).frame
    save_array(folder / "logits.npy", network.predict(frame))


@lru_cache(maxsize=1)  # a model predicts several tables in a row
def _loaded(model: Path, pretrained: Path, weights: str) -> FoldModel:
    return load_fold_model(model, pretrained)
