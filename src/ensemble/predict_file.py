"""Decide the pairs of any file with a trained ensemble."""

from pathlib import Path

import numpy as np
from tqdm import tqdm

from ..config import Config
from ..data.pairs import read_pairs
from ..data.prepare import report_nothing
from ..errors import UserError
from ..layout import Layout
from ..training.fold_model import load_fold_model
from .finished import finished_run
from .groups import MOST, candidate_pairs, group_sizes
from .predicted import Predicted
from .submission import refuse_to_replace, write_submission


def predict_file(
    config: Config,
    layout: Layout,
    source: Path,
    target: Path,
    groups: bool = False,
    force: bool = False,
) -> np.ndarray:
    """Write `id,label` for the pairs of `source` to `target`; returns the labels, int64[P].

    Args:
        groups: decide the candidates of a question together, not pair by pair.
        force: replace a `target` that is no submission.

    Raises:
        UserError: the ensemble is not trained, or no longer what was tuned; the file cannot be
            read, or has no groups; `target` would be lost.
    """
    refuse_to_replace(target, source, force)
    table_read = read_pairs(source, labelled=False)
    report_nothing(table_read, labelled=False)
    frame = table_read.frame
    if groups and not np.any((group_sizes(frame) > 1) & (group_sizes(frame) <= MOST)):
        raise UserError(
            f"{source}: there are no groups to decide: no question stands as query1 in 2 to {MOST} "
            "pairs. Leave out --groups to decide pair by pair."
        )
    if not layout.decision_file.is_file():
        raise UserError(
            f"The ensemble of profile '{config.profile}' is not trained (there is no "
            f"{layout.decision_file}). Run first: bash run.sh --profile {config.profile}"
        )
    layout, decision = finished_run(layout.work, layout.results)
    asked = {name: [frame] for name in layout.members}
    for name in decision.bi_encoders if groups else ():
        asked[name].append(candidate_pairs(frame))
    models = [(name, fold) for name in asked for fold in range(layout.folds)]
    answers: dict[str, list[list[np.ndarray]]] = {name: [] for name in asked}
    for name, fold in tqdm(models, "predict", unit="model"):
        network = load_fold_model(layout.fold_model(name, fold), config.paths.pretrained)
        answers[name].append([network.predict(part) for part in asked[name]])
    means = {n: [np.mean(part, axis=0) for part in zip(*folds)] for n, folds in answers.items()}
    logits = {name: mean[0] for name, mean in means.items()}
    alike = {name: mean[1] for name, mean in means.items() if len(mean) > 1}
    table = Predicted(frame, logits, alike)
    labels = decision.decide_groups(table) if groups else decision.decide(logits)
    return write_submission(frame, labels, target)
