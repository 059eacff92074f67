"""Scores: accuracy, calibration, the worst mistakes. How sure they are: intervals.py.

All functions take arrays aligned with the rows of a pair frame. Labels and predictions are
0 (different) or 1 (the same question); a logit above the threshold means 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .checks import binary, finite, hits, same_length
from .intervals import accuracy_interval

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class CalibrationBin:
    """The pairs whose probability lies in [low, high); the last bin includes 1."""

    low: float
    high: float
    pairs: int
    mean_probability: float
    positive_rate: float  # share of these pairs with label 1


@dataclass(frozen=True)
class CategoryScore:
    """Accuracy on one category; `interval` is None where no components were given."""

    category: str
    pairs: int
    accuracy: float
    interval: tuple[float, float] | None


def accuracy(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Share of rows where the prediction equals the label, in [0, 1].

    Raises:
        ValueError: no rows, different lengths, or a value other than 0 and 1 (so that
            unlabelled rows, label -1, never count as mistakes).
    """
    return float(hits(labels, predictions).mean())


def accuracy_by_threshold(
    labels: ArrayLike, logits: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Accuracy of `logit > threshold` for every threshold that makes a difference.

    Returns:
        thresholds: [k + 1], -inf and then the k distinct logits, ascending. Between one
            threshold and the next the accuracy does not change.
        accuracies: [k + 1]

    Raises:
        ValueError: as for `pair_losses`.
    """
    labels = binary(labels, "label")
    logits = finite(same_length(logits, labels), "logit")
    distinct, position = np.unique(logits, return_inverse=True)
    # Raising the threshold past a logit turns its rows to 0: negatives won, positives lost.
    gain = np.bincount(position, weights=1 - 2 * labels)
    right = labels.sum() + np.concatenate([[0.0], np.cumsum(gain)])
    return np.concatenate([[-np.inf], distinct]), right / len(labels)


def calibration_bins(
    labels: ArrayLike, probabilities: ArrayLike, bins: int = 10
) -> list[CalibrationBin]:
    """The points of a reliability diagram: equal-width bins of the probability, empty ones out.

    Raises:
        ValueError: no rows, different lengths, a label outside {0, 1}, a probability
            outside [0, 1].
    """
    labels = binary(labels, "label")
    probabilities = finite(same_length(probabilities, labels), "probability")
    if probabilities.min() < 0 or probabilities.max() > 1:
        raise ValueError("A probability lies outside [0, 1]. Were logits passed?")
    # Edges are compared exactly; floor(p * bins) would put 0.29 * 100 = 28.999... too low.
    edges = np.arange(bins + 1) / bins
    position = np.minimum(np.searchsorted(edges, probabilities, side="right") - 1, bins - 1)
    found = []
    for index in np.unique(position):
        inside = position == index
        found.append(
            CalibrationBin(
                low=float(edges[index]),
                high=float(edges[index + 1]),
                pairs=int(inside.sum()),
                mean_probability=float(probabilities[inside].mean()),
                positive_rate=float(labels[inside].mean()),
            )
        )
    return found


def expected_calibration_error(
    labels: ArrayLike, probabilities: ArrayLike, bins: int = 10
) -> float:
    """Mean gap between probability and positive rate over bins, weighted by pairs, in [0, 1].

    Naeini, Cooper and Hauskrecht 2015 (Obtaining well calibrated probabilities using Bayesian
    binning, AAAI). Zero means that of the pairs scored 0.8, 80 % are the same question.

    Raises:
        ValueError: as for `calibration_bins`.
    """
    points = calibration_bins(labels, probabilities, bins)
    gaps = [point.pairs * abs(point.mean_probability - point.positive_rate) for point in points]
    return sum(gaps) / sum(point.pairs for point in points)


def per_category(
    frame: DataFrame, predictions: ArrayLike, component: ArrayLike | None = None
) -> list[CategoryScore]:
    """Accuracy per value of `category`, most frequent first; with intervals given `component`.

    Raises:
        ValueError: as for `accuracy`.
    """
    labels = frame["label"].to_numpy()
    right = hits(labels, predictions)
    predictions = np.asarray(predictions)
    component = None if component is None else same_length(component, right)
    categories = frame["category"].to_numpy(dtype=object)
    scores = []
    for category in sorted(set(categories)):
        rows = categories == category
        interval = None
        if component is not None:
            interval = accuracy_interval(labels[rows], predictions[rows], component[rows])
        scores.append(CategoryScore(category, int(rows.sum()), float(right[rows].mean()), interval))
    return sorted(scores, key=lambda score: (-score.pairs, score.category))


def confident_mistakes(
    frame: DataFrame, logits: ArrayLike, threshold: float, limit: int = 30
) -> DataFrame:
    """The wrong pairs farthest from the threshold, farthest first.

    Returns:
        At most `limit` rows of `frame` with their index, and a column `probability`: that of
        label 1, the logistic function of the logit.

    Raises:
        ValueError: as for `pair_losses`.
    """
    labels = binary(frame["label"].to_numpy(), "label")
    logits = finite(same_length(logits, labels), "logit")
    wrong = np.flatnonzero((logits > threshold) != labels)
    farthest = wrong[np.argsort(-np.abs(logits[wrong] - threshold), kind="stable")][:limit]
    # exp(-log(1 + exp(-z))) does not overflow.
    probability = np.exp(-np.logaddexp(0.0, -logits[farthest]))
    return frame.iloc[farthest].assign(probability=probability)
