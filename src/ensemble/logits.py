"""Weights × table → logits."""

from functools import lru_cache
from pathlib import Path

from ..data.pairs import read_pairs
from ..files import save_array, sha256
from ..training.fold_model import WEIGHTS, FoldModel, load_fold_model, own_rows


def write_logits(
    model: Path, pretrained: Path, table: Path, folds: Path | None, fold: int, folder: Path
) -> None:
    """Write logits.npy, float64[P], of the rows of a pair table by a fold model.

    Args:
        model: the fold model's folder.
        folds: the folds of the table's rows, of which those of `fold` are predicted; None: all.
    """
    if folds is None:
        frame = read_pairs(table, labelled=False).frame
    else:
        frame = own_rows(table, folds, fold)
    network = _loaded(model, pretrained, sha256(model / WEIGHTS))
    save_array(folder / "logits.npy", network.predict(frame))


@lru_cache(maxsize=1)  # a model predicts several tables in a row
def _loaded(model: Path, pretrained: Path, weights: str) -> FoldModel:
    return load_fold_model(model, pretrained)
