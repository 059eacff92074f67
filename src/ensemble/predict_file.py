"""Decide the pairs of any file with a trained ensemble."""

from pathlib import Path

import numpy as np
from tqdm import tqdm

from ..config import Config
from ..data.pairs import read_pairs
from ..errors import UserError
from ..layout import Layout
from ..training.fold_model import load_fold_model
from .finished import finished_run
from .submission import write_submission


def predict_file(config: Config, layout: Layout, source: Path, target: Path) -> np.ndarray:
    """Write `id,label` for the pairs of `source` to `target`; returns the labels, int64[P].

    Raises:
        UserError: the ensemble is not trained, or no longer what was tuned, or the file cannot be
            read.
    """
    frame = read_pairs(source, labelled=False).frame
    if not layout.decision_file.is_file():
        raise UserError(
            f"The ensemble of profile '{config.profile}' is not trained (there is no "
            f"{layout.decision_file}). Run first: bash run.sh --profile {config.profile}"
        )
    layout, decision = finished_run(layout.work, layout.results)
    models = [(name, fold) for name in layout.members for fold in range(layout.folds)]
    logits: dict[str, list[np.ndarray]] = {name: [] for name in layout.members}
    for name, fold in tqdm(models, "predict", unit="model"):
        network = load_fold_model(layout.fold_model(name, fold), config.paths.pretrained)
        logits[name].append(network.predict(frame))
    means = {name: np.mean(values, axis=0) for name, values in logits.items()}
    labels = decision.decide(means)
    write_submission(frame, labels, target)
    return labels
