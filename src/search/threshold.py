"""From which cosine on two questions count as the same: chosen on out-of-fold pairs."""

from functools import partial
from pathlib import Path

import numpy as np
from sklearn.metrics import precision_recall_curve

from ..files import read_json, write_json
from ..models.registry import code_of_member
from ..step import Step
from .duplicates import labelled_groups
from .encode import encode
from .matcher import Matcher

_FILE = "threshold.json"


def threshold(matcher: Matcher) -> float:
    """The cosine that best separates groups among questions that the model was not trained on.

    These are the fold's own rows of the training file. Of all pairs of their distinct questions,
    those in one labelled group should lie above it: the cosine with the highest F1. It is kept in
    the run's work directory and chosen again when the weights or the data change.
    """
    layout, fold = matcher.layout, matcher.chosen.fold
    step = Step(
        f"threshold of {matcher.chosen.name} fold {fold}",
        layout.work / "search",
        partial(_write_threshold, matcher),
        reads=[layout.table_file("train"), layout.folds_file],
        settings={"model": matcher.identity, "fold": fold},
        code=[encode, *code_of_member(matcher.bi.member)],
    )
    step.run()
    return float(read_json(step.folder / _FILE)["cosine"])


def _write_threshold(matcher: Matcher, folder: Path) -> None:
    own = matcher.layout.train()[matcher.layout.fold_numbers() == matcher.chosen.fold]
    questions, groups = labelled_groups(own)
    vectors = matcher.encode(questions, progress="out-of-fold questions")
    cosine, f1 = best_threshold(vectors, groups)
    write_json(folder / _FILE, {"cosine": cosine, "f1": f1, "questions": len(questions)})


def best_threshold(vectors: np.ndarray, groups: np.ndarray) -> tuple[float, float]:
    """The cosine with the highest F1 over all pairs of rows, and that F1.

    Args:
        vectors: float32[n, H] of length 1; groups: int[n].
    """
    cosines, same = [], []
    for row in range(len(vectors) - 1):  # the pairs of each row with those after it
        scores = vectors[row + 1 :] @ vectors[row]
        together = groups[row + 1 :] == groups[row]
        # Below 0 no threshold is sensible; most of the millions of pairs are left out here.
        kept = together | (scores > 0)
        cosines.append(scores[kept])
        same.append(together[kept])
    truth = np.concatenate(same) if same else np.zeros(0, bool)
    if not truth.any():
        return 0.9999, 0.0  # 1 would part a vector from itself by rounding
    precision, recall, cuts = precision_recall_curve(truth, np.concatenate(cosines))
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
    best = int(np.argmax(f1[:-1]))
    return float(cuts[best]), float(f1[best])
