"""Decide the groups of a table: which of a question's candidates ask the same as it.

The competition's annotators gave each question five, ten or fifteen candidates, and nearly always
two in every five ask the same. So a group's labels depend on each other in two ways: their number
is known within narrow bounds, and candidates that both ask the same as the question ask the same
as each other. With zᵢ the ensemble's logit of a group's i-th pair, cᵢⱼ the bi-encoders' logit of
its i-th and j-th candidate as a pair, and k the number of ones among its n labels y:

    P(y) ∝ exp(Σ yᵢ (scale · zᵢ + intercept) + kinship · Σ yᵢ yⱼ cᵢⱼ) · prior(k | n) / (n over k)

The labels of a group are the most probable ones; with at most 15 pairs all can be tried. The order
of the rows, which would give the labels away, is never read. All this says how the files were made:
it does not carry over to questions in the wild.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd

from .count_prior import CountPrior
from .groups import groups_by_size

_NEGLIGIBLE = 1e-4  # a count k with a smaller share is not tried
_AT_ONCE = 200  # groups of one size: with 15 pairs they take up to 160 MB


def subsets(share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All labellings of n pairs worth trying, bool[S, n], and the log of prior(k) / (n over k).

    Args:
        share: `CountPrior.share(n)`.
    """
    size = len(share) - 1
    tried = [k for k in range(size + 1) if share[k] >= _NEGLIGIBLE]
    chosen = [np.array(list(combinations(range(size), k)), int) for k in tried]
    labels = np.zeros((sum(map(len, chosen)), size), bool)
    start = 0
    for rows in chosen:
        labels[np.arange(start, start + len(rows))[:, None], rows] = True
        start += len(rows)
    log = [np.log(share[k] / comb(size, k)) for k in tried]
    return labels, np.repeat(log, [len(rows) for rows in chosen])


@dataclass(frozen=True)
class Sized:
    """Groups of one size, ready to be weighed.

    Attributes:
        rows: int64[G, n], their rows in the table.
        labels: bool[S, n], the labellings that are tried.
        prior: float64[S], the log of their prior.
        terms: float64[3, G, S]: for each group and labelling Σ yᵢ zᵢ, k and Σ yᵢ yⱼ cᵢⱼ.
    """

    rows: np.ndarray
    labels: np.ndarray
    prior: np.ndarray
    terms: np.ndarray

    def scores(self, parameters: np.ndarray) -> np.ndarray:
        """float64[G, S]: log P(y) up to a constant of the group, by scale, intercept, kinship."""
        return np.tensordot(parameters, self.terms, 1) + self.prior


def weigh(
    frame: pd.DataFrame, logits: np.ndarray, alike: np.ndarray | None, prior: CountPrior
) -> Iterator[Sized]:
    """What is to be known of all groups of a table, some of one size at a time.

    Args:
        logits: float64[P], of the frame's pairs.
        alike: float64[M], of its `candidate_pairs`; None: kinship has no say.
    """
    start = 0
    for same_size in groups_by_size(frame):
        size = same_size.shape[1]
        labels, log_prior = subsets(prior.share(size))
        chosen, number = labels.astype(float), labels.sum(axis=1)
        upper = np.triu_indices(size, k=1)
        for first in range(0, len(same_size), _AT_ONCE):
            rows = same_size[first : first + _AT_ONCE]
            kin = np.zeros((len(rows), size, size))
            if alike is not None:
                end = start + len(rows) * len(upper[0])
                kin[:, *upper] = alike[start:end].reshape(len(rows), -1)
                start = end
            within = np.stack([((chosen @ c) * chosen).sum(axis=1) for c in kin])
            terms = [logits[rows] @ chosen.T, np.broadcast_to(number, within.shape), within]
            yield Sized(rows, labels, log_prior, np.stack(terms))


def most_probable(
    groups: Iterable[Sized], parameters: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """Labels int64[P]: the groups' most probable ones, `labels` for pairs that are in none."""
    decided = labels.copy()
    for sized in groups:
        decided[sized.rows] = sized.labels[sized.scores(parameters).argmax(axis=1)]
    return decided


def log_loss(groups: Iterable[Sized], parameters: np.ndarray, labels: np.ndarray) -> float:
    """Mean negative log probability of the groups' true labels, int[P], in nats a group.

    Groups whose true labels are not among those that are tried do not count.
    """
    losses = [np.zeros(0)]
    for sized in groups:
        true = (labels[sized.rows][:, None] == sized.labels).all(axis=2)
        kept = true.any(axis=1)
        scores = sized.scores(parameters)[kept]
        losses.append(np.logaddexp.reduce(scores, axis=1) - scores[true[kept]])
    return float(np.concatenate(losses).mean()) if len(losses) > 1 else 0.0


@dataclass(frozen=True)
class GroupRule:
    """The parameters of the model above."""

    scale: float = 1.0
    intercept: float = 0.0
    kinship: float = 0.0
    prior: CountPrior = CountPrior()

    def decide(
        self, frame: pd.DataFrame, logits: np.ndarray, alike: np.ndarray | None, labels: np.ndarray
    ) -> np.ndarray:
        """Labels int64[P] of a pair frame; `labels` for pairs that are in no group.

        Args:
            logits, alike: as for `weigh`.
        """
        groups = weigh(frame, logits, alike, self.prior)
        return most_probable(groups, np.array([self.scale, self.intercept, self.kinship]), labels)
