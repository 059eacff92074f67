"""Which asked questions an existing FAQ answers, and which unanswered ones deserve an entry."""

from dataclasses import dataclass

import numpy as np

from .cluster import cluster
from .index import Index


@dataclass(frozen=True)
class NewEntry:
    """Unanswered questions that ask the same.

    Attributes:
        representative: row in the asked corpus.
        examples: further rows, in the order of the group.
        asked: how often they were asked, repetitions included.
    """

    representative: int
    examples: list[int]
    asked: int


@dataclass(frozen=True)
class Discovery:
    """For every distinct asked question the nearest known one, and the groups of the rest.

    Attributes:
        known: int64[n], row of the nearest FAQ entry.
        cosine: float32[n], its cosine.
        answered: bool[n], whether that is near enough.
        new: groups of unanswered questions asked more than once, the most asked first.
    """

    known: np.ndarray
    cosine: np.ndarray
    answered: np.ndarray
    new: list[NewEntry]


def discover(known: Index, asked: Index, threshold: float) -> Discovery:
    """Compare what was asked with what is known; `threshold` is a cosine.

    Raises:
        UserError: too many unanswered questions to cluster.
    """
    scores, rows = known.nearest(np.asarray(asked.vectors), 1)
    cosine, nearest = scores[:, 0], rows[:, 0]
    answered = cosine >= threshold
    rest = np.flatnonzero(~answered)
    groups = cluster(asked.vectors[rest], threshold) if len(rest) else []
    counts = asked.corpus.counts
    new = [
        NewEntry(int(rest[group[0]]), rest[group[1:]].tolist(), int(counts[rest[group]].sum()))
        for group in groups
    ]
    worth = [entry for entry in new if entry.asked > 1]
    return Discovery(nearest, cosine, answered, sorted(worth, key=lambda entry: -entry.asked))
