"""How sure a score is: intervals, and tests of two scores on the same rows.

Pairs that share a question are not independent: one misunderstood question makes several
pairs wrong together. Intervals therefore resample connected components of the question graph
(`component`, one integer id a row), never single rows.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .checks import hits, pair_losses, same_length


def accuracy_interval(
    labels: ArrayLike,
    predictions: ArrayLike,
    component: ArrayLike,
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
        ValueError: as for `accuracy`, or `component` of another length.
    """
    return share_interval(hits(labels, predictions), component, level, resamples, seed)


def share_interval(
    right: ArrayLike,
    component: ArrayLike,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """`accuracy_interval` of values in [0, 1] a row, such as the share of seeds that are right."""
    right = np.asarray(right)
    component = same_length(component, right)
    count = len(np.unique(component))
    if count == 1:
        return 0.0, 1.0
    # The probability that all components agree by luck is (1 - level) / 2 at this accuracy.
    all_agree = ((1 - level) / 2) ** (1 / count)
    if (right == 1).all():
        return all_agree, 1.0
    if not right.any():
        return 0.0, 1 - all_agree
    return component_interval(right, component, level, resamples, seed)


def paired_difference(
    labels: ArrayLike, a: ArrayLike, b: ArrayLike, component: ArrayLike, **bootstrap: Any
) -> tuple[float, float, float]:
    """Accuracy of predictions `a` minus that of `b`: (difference, low, high).

    Both are scored on the same resampled components, so what the two have in common cancels.
    An interval that contains 0 means that the data cannot tell them apart.

    Args:
        bootstrap: level, resamples and seed of `component_interval`.

    Raises:
        ValueError: as for `accuracy_interval`.
    """
    gain = hits(labels, a).astype(int) - hits(labels, b)
    return mean_gain(gain, component, (-1.0, 1.0), **bootstrap)


def paired_loss_difference(
    labels: ArrayLike, a: ArrayLike, b: ArrayLike, component: ArrayLike, **bootstrap: Any
) -> tuple[float, float, float]:
    """As `paired_difference`, of the log loss under logits `a` and `b`: below 0, a is better.

    The loss of a pair says how sure a model was, accuracy only on which side of the threshold it
    stood, so the loss tells models apart where too few pairs change sides.

    Raises:
        ValueError: as for `pair_losses`.
    """
    gain = pair_losses(labels, a) - pair_losses(labels, b)
    return mean_gain(gain, component, (-np.inf, np.inf), **bootstrap)


def mean_gain(
    gain: NDArray,
    component: ArrayLike,
    unknown: tuple[float, float] = (-1.0, 1.0),
    **bootstrap: Any,
) -> tuple[float, float, float]:
    """Mean of a gain a row, and its interval: `unknown` where there is but one component."""
    component = same_length(component, gain)
    one = len(np.unique(component)) == 1
    low, high = unknown if one else component_interval(gain, component, **bootstrap)
    return float(gain.mean()), low, high


def component_interval(
    values: ArrayLike,
    component: ArrayLike,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile interval (low, high) of the mean of any `values`, one a row, over components."""
    means = component_means(values, component, resamples, seed)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def component_means(
    values: ArrayLike, component: ArrayLike, resamples: int = 2000, seed: int = 0
) -> NDArray[np.float64]:
    """float64[resamples]: the mean of `values` when components are drawn with replacement."""
    _, number = np.unique(component, return_inverse=True)
    rows = np.bincount(number)
    sums = np.bincount(number, weights=values)
    # Components with as many rows and the same sum are interchangeable, and few such kinds
    # exist: drawing how often each kind comes up is the same bootstrap in far fewer draws.
    kinds, counts = np.unique(np.column_stack([rows, sums]), axis=0, return_counts=True)
    draws = np.random.default_rng(seed).multinomial(len(rows), counts / len(rows), size=resamples)
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

    right_a, right_b = hits(labels, a), hits(labels, b)
    only_a = int((right_a & ~right_b).sum())
    only_b = int((right_b & ~right_a).sum())
    if only_a + only_b == 0:
        return 1.0
    return float(binomtest(only_a, only_a + only_b, 0.5).pvalue)
