"""Accuracy over seeds and the difference of two arms, with what chance could have made of it.

A row's value is its mean over the seeds: 2/3 where two of three trials got it right. Intervals and
tests then treat connected components of questions as what was sampled, because pairs that share a
question are right or wrong together.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....report.intervals import component_means, mcnemar, mean_gain, share_interval

PERMUTATIONS = 9999


@dataclass(frozen=True)
class Score:
    """Accuracy of an arm: its mean over seeds, and of each seed.

    `spread` is the standard deviation over seeds (0 for a single one).
    """

    accuracy: float
    low: float
    high: float
    spread: float
    per_seed: tuple[float, ...]


@dataclass(frozen=True)
class Difference:
    """Accuracy minus that of the reference on the same rows.

    `p_value` is from a permutation test over components, `mcnemar_p` McNemar's exact one on the
    seeds' mean scores, which takes rows as independent and is therefore the bolder of the two.
    """

    difference: float
    low: float
    high: float
    p_value: float
    mcnemar_p: float


def hits(labels: NDArray, scores: NDArray) -> NDArray[np.float64]:
    """float64[P]: the share of seeds that decide a row rightly.

    Args:
        labels: int[P]; scores: float[seeds, P], above 0 means 1.
    """
    return ((scores > 0) == (labels == 1)).mean(axis=0)


def score(labels: NDArray, scores: NDArray, component: NDArray) -> Score:
    """Mean accuracy over seeds, its 95 % interval over components, its spread over seeds."""
    per_seed = ((scores > 0) == (labels == 1)).mean(axis=1)
    low, high = share_interval(hits(labels, scores), component)
    spread = float(per_seed.std(ddof=1)) if len(per_seed) > 1 else 0.0
    return Score(float(per_seed.mean()), low, high, spread, tuple(per_seed.tolist()))


def difference(
    labels: NDArray, scores: NDArray, reference: NDArray, component: NDArray
) -> Difference:
    """Compare the scores of two arms, float[seeds, P] each, on the same rows.

    The networks are taken as given: of two recipes that are equally good, one may have had the
    luckier seeds, and with three seeds no test could tell.
    """
    gain = hits(labels, scores) - hits(labels, reference)
    mean, low, high = mean_gain(gain, component)
    decided = [(values.mean(axis=0) > 0).astype(int) for values in (scores, reference)]
    return Difference(mean, low, high, sign_flip_test(gain, component), mcnemar(labels, *decided))


def sign_flip_test(gain: NDArray, component: NDArray) -> float:
    """Two-sided p-value that the mean of `gain` is 0.

    Were two arms alike, either could have been called the first in any component: the signs of
    the components' sums are flipped at random (approximate randomisation, Noreen 1989; Dror et
    al. 2018, "The Hitchhiker's Guide to Testing Statistical Significance in NLP").
    """
    from scipy.stats import permutation_test  # here, because scipy.stats is slow to import

    _, number = np.unique(component, return_inverse=True)
    sums = np.bincount(number, weights=gain)
    sums = sums[sums != 0]
    if len(sums) < 2:  # a single component has two signs, and both give the same distance from 0
        return 1.0

    def total(values: NDArray, axis: int) -> NDArray:
        # Thirds do not add up exactly: equal totals must stay equal.
        return values.sum(axis=axis).round(9)

    result = permutation_test(
        (sums,),
        total,
        permutation_type="samples",
        vectorized=True,
        n_resamples=PERMUTATIONS,
        batch=1000,
        rng=np.random.default_rng(0),
    )
    return float(result.pvalue)


def apart(a: tuple[NDArray, NDArray], b: tuple[NDArray, NDArray]) -> tuple[float, float, float]:
    """Mean of values on one set of rows minus that on another: (difference, low, high), 95 %.

    Args:
        a, b: values float[P] and components int[P] of two evaluation parts, taken as independent.
    """
    means_a, means_b = component_means(*a, seed=0), component_means(*b, seed=1)
    low, high = np.quantile(means_a - means_b, [0.025, 0.975])
    return float(np.mean(a[0]) - np.mean(b[0])), float(low), float(high)


def false_discovery(p_values: list[float]) -> list[float]:
    """p-values adjusted for their number (Benjamini & Hochberg 1995), in the same order.

    Of the comparisons below 0.05 then at most one in twenty is expected to be chance.
    """
    from scipy.stats import false_discovery_control

    return false_discovery_control(p_values).tolist() if p_values else []
