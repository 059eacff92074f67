"""Scores and their uncertainty: accuracy, paired tests, calibration, ranking.

All functions take arrays aligned with the rows of a pair frame. Labels and predictions are
0 (different) or 1 (the same question); a logit above the threshold means 1.

Pairs that share a question are not independent: one misunderstood question makes several
pairs wrong together. Intervals therefore resample connected components of the question graph
(`groups`, one integer id per row), never single rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    """Accuracy on one category; `interval` is None where no groups were given."""

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
    return float(_hits(labels, predictions).mean())


def accuracy_interval(
    labels: ArrayLike,
    predictions: ArrayLike,
    groups: ArrayLike,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile bootstrap interval (low, high) of the accuracy over components.

    The cluster bootstrap of Field and Welsh 2007 (Bootstrapping clustered data, J. R. Stat.
    Soc. B 69): draw as many components as there are, with replacement, each with all its rows.
    It has no spread where every row is right, or every row is wrong; the exact binomial bound
    (Clopper and Pearson 1934) with components as trials stands in there. A single component
    says nothing about other components: (0, 1).

    Raises:
        ValueError: as for `accuracy`, or `groups` of another length.
    """
    hits = _hits(labels, predictions)
    groups = _same_length(groups, hits)
    components = len(np.unique(groups))
    if components == 1:
        return 0.0, 1.0
    # The probability that all components agree by luck is (1 - level) / 2 at this accuracy.
    all_agree = ((1 - level) / 2) ** (1 / components)
    if hits.all():
        return all_agree, 1.0
    if not hits.any():
        return 0.0, 1 - all_agree
    return component_interval(hits, groups, level, resamples, seed)


def paired_difference(
    labels: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    groups: ArrayLike,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float, float]:
    """Accuracy of predictions `a` minus that of `b`: (difference, low, high).

    Both are scored on the same resampled components, so what the two have in common cancels.
    An interval that contains 0 means that the data cannot tell them apart.

    Raises:
        ValueError: as for `accuracy_interval`.
    """
    return _paired_mean(_hits(labels, a).astype(int), _hits(labels, b).astype(int), groups,
                        (-1.0, 1.0), level, resamples, seed)  # fmt: skip


def paired_loss_difference(
    labels: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    groups: ArrayLike,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float, float]:
    """As `paired_difference`, of the log loss under logits `a` and `b`: below 0, a is better.

    The loss of a pair says how sure a model was, accuracy only on which side of the threshold it
    stood, so the loss tells models apart where too few pairs change sides.

    Raises:
        ValueError: as for `log_loss`.
    """
    losses = [_pair_losses(labels, logits) for logits in (a, b)]
    return _paired_mean(*losses, groups, (-np.inf, np.inf), level, resamples, seed)


def _paired_mean(
    a: NDArray,
    b: NDArray,
    groups: ArrayLike,
    unknown: tuple[float, float],  # the interval where there is but one component
    level: float,
    resamples: int,
    seed: int,
) -> tuple[float, float, float]:
    gain = a - b
    groups = _same_length(groups, gain)
    difference = float(gain.mean())
    if len(np.unique(groups)) == 1:
        return difference, *unknown
    return difference, *component_interval(gain, groups, level, resamples, seed)


def component_interval(
    values: ArrayLike,
    groups: ArrayLike,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile interval (low, high) of the mean of any `values`, one a row, over components."""
    means = component_means(values, groups, resamples, seed)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def component_means(
    values: ArrayLike, groups: ArrayLike, resamples: int = 2000, seed: int = 0
) -> NDArray[np.float64]:
    """float64[resamples]: the mean of `values` when components are drawn with replacement."""
    _, component = np.unique(groups, return_inverse=True)
    rows = np.bincount(component)
    sums = np.bincount(component, weights=values)
    # Components with as many rows and the same sum are interchangeable, and few such kinds
    # exist: drawing how often each kind comes up is the same bootstrap in far fewer draws.
    kinds, counts = np.unique(np.column_stack([rows, sums]), axis=0, return_counts=True)
    draws = np.random.default_rng(seed).multinomial(
        len(rows), counts / len(rows), size=resamples
    )
    totals = draws.astype(float) @ kinds  # [resamples, 2]: rows and sum
    return totals[:, 1] / totals[:, 0]


def mcnemar(labels: ArrayLike, a: ArrayLike, b: ArrayLike) -> float:
    """Exact two-sided p-value that predictions `a` and `b` have the same accuracy.

    McNemar 1947 (Psychometrika 12), exact form: of the rows where only one of the two is
    right, each is right in half of them by chance. It takes rows as independent, which pairs
    with shared questions are not: read it together with `paired_difference`.

    Raises:
        ValueError: as for `accuracy`.
    """
    from scipy.stats import binomtest  # here, because scipy.stats takes a second to import

    right_a, right_b = _hits(labels, a), _hits(labels, b)
    only_a = int((right_a & ~right_b).sum())
    only_b = int((right_b & ~right_a).sum())
    if only_a + only_b == 0:
        return 1.0
    return float(binomtest(only_a, only_a + only_b, 0.5).pvalue)


def log_loss(labels: ArrayLike, logits: ArrayLike) -> float:
    """Mean negative log-likelihood in nats; exact for logits of any size.

    Raises:
        ValueError: no rows, different lengths, a label outside {0, 1}, a logit not finite.
    """
    return float(_pair_losses(labels, logits).mean())


def _pair_losses(labels: ArrayLike, logits: ArrayLike) -> NDArray[np.float64]:
    labels = _binary(labels, "label")
    logits = _finite(_same_length(logits, labels), "logit")
    return np.logaddexp(0.0, np.where(labels == 1, -logits, logits))


def auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """Area under the ROC curve: the chance that a positive pair outscores a negative one.

    Raises:
        ValueError: as for `log_loss`, or only one of the two classes occurs.
    """
    from sklearn.metrics import roc_auc_score  # here, because scikit-learn is slow to import

    labels = _binary(labels, "label")
    scores = _finite(_same_length(scores, labels), "score")
    if labels.min() == labels.max():
        raise ValueError("The area under the ROC curve needs both classes.")
    return float(roc_auc_score(labels, scores))


def accuracy_by_threshold(
    labels: ArrayLike, logits: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Accuracy of `logit > threshold` for every threshold that makes a difference.

    Returns:
        thresholds: [k + 1], -inf and then the k distinct logits, ascending. Between one
            threshold and the next the accuracy does not change.
        accuracies: [k + 1]

    Raises:
        ValueError: as for `log_loss`.
    """
    labels = _binary(labels, "label")
    logits = _finite(_same_length(logits, labels), "logit")
    distinct, position = np.unique(logits, return_inverse=True)
    # Raising the threshold past a logit turns its rows to 0: negatives won, positives lost.
    gain = np.bincount(position, weights=1 - 2 * labels)
    hits = labels.sum() + np.concatenate([[0.0], np.cumsum(gain)])
    return np.concatenate([[-np.inf], distinct]), hits / len(labels)


def calibration_bins(
    labels: ArrayLike, probabilities: ArrayLike, bins: int = 10
) -> list[CalibrationBin]:
    """The points of a reliability diagram: equal-width bins of the probability, empty ones out.

    Raises:
        ValueError: no rows, different lengths, a label outside {0, 1}, a probability
            outside [0, 1].
    """
    labels = _binary(labels, "label")
    probabilities = _finite(_same_length(probabilities, labels), "probability")
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
    frame: DataFrame, predictions: ArrayLike, groups: ArrayLike | None = None
) -> list[CategoryScore]:
    """Accuracy per value of `category`, most frequent first; with intervals given `groups`.

    Raises:
        ValueError: as for `accuracy`.
    """
    labels = frame["label"].to_numpy()
    hits = _hits(labels, predictions)
    predictions = np.asarray(predictions)
    groups = None if groups is None else _same_length(groups, hits)
    categories = frame["category"].to_numpy(dtype=object)
    scores = []
    for category in sorted(set(categories)):
        rows = categories == category
        interval = None
        if groups is not None:
            interval = accuracy_interval(labels[rows], predictions[rows], groups[rows])
        scores.append(
            CategoryScore(category, int(rows.sum()), float(hits[rows].mean()), interval)
        )
    return sorted(scores, key=lambda score: (-score.pairs, score.category))


def confident_mistakes(
    frame: DataFrame, logits: ArrayLike, threshold: float, limit: int = 30
) -> DataFrame:
    """The wrong pairs farthest from the threshold, farthest first.

    Returns:
        At most `limit` rows of `frame` with their index, and a column `probability`: that of
        label 1, the logistic function of the logit.

    Raises:
        ValueError: as for `log_loss`.
    """
    labels = _binary(frame["label"].to_numpy(), "label")
    logits = _finite(_same_length(logits, labels), "logit")
    wrong = np.flatnonzero((logits > threshold) != labels)
    farthest = wrong[np.argsort(-np.abs(logits[wrong] - threshold), kind="stable")][:limit]
    # exp(-log(1 + exp(-z))) does not overflow.
    probability = np.exp(-np.logaddexp(0.0, -logits[farthest]))
    return frame.iloc[farthest].assign(probability=probability)


def _hits(labels: ArrayLike, predictions: ArrayLike) -> NDArray[np.bool_]:
    """Where the prediction is right, after checking both."""
    labels = _binary(labels, "label")
    return labels == _binary(_same_length(predictions, labels), "prediction")


def _binary(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """`values` as integers, all 0 or 1."""
    values = np.asarray(values)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"A score needs one {name} a row and at least one row.")
    if not np.isin(values, (0, 1)).all():
        raise ValueError(f"Every {name} must be 0 or 1; unlabelled rows must be left out.")
    return values.astype(np.int64)


def _same_length(values: ArrayLike, reference: NDArray) -> NDArray:
    """`values` as an array, as long as `reference`."""
    values = np.asarray(values)
    if values.shape != reference.shape:
        raise ValueError(f"{values.shape} values do not align with {reference.shape} rows.")
    return values


def _finite(values: NDArray, name: str) -> NDArray[np.float64]:
    """`values` as float64 without NaN and infinity."""
    values = values.astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"A {name} is not a finite number.")
    return values
