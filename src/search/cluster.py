"""Groups of questions that lie close together, and how they compare with labelled groups."""

from dataclasses import dataclass

import numpy as np
from sentence_transformers.util import community_detection
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import pair_confusion_matrix

from ..errors import UserError
from .nearest import EXACT_LIMIT


def cluster(vectors: np.ndarray, threshold: float, smallest: int = 1) -> list[list[int]]:
    """Groups of rows, largest first; a group's first row is its representative.

    All of a group lies within `threshold` (a cosine) of the representative, so that groups do not
    grow together along chains (community detection of sentence-transformers).

    Args:
        vectors: float32[n, H] of length 1.
        smallest: groups with fewer rows are left out.

    Raises:
        UserError: more than EXACT_LIMIT vectors; every one is compared with every other.
    """
    refuse_too_many(len(vectors))
    if len(vectors) == 1:  # the library's top-k wants more
        return [[0]] if smallest <= 1 else []
    return community_detection(np.asarray(vectors), threshold, min_community_size=smallest)


def refuse_too_many(questions: int) -> None:
    """Raises UserError beyond EXACT_LIMIT questions, so that it can be known before encoding."""
    if questions > EXACT_LIMIT:
        raise UserError(
            f"Clustering compares all pairs and takes up to {EXACT_LIMIT:,} different questions; "
            f"here are {questions:,}. Split the file, by topic or by month."
        )


def numbers(groups: list[list[int]], count: int) -> np.ndarray:
    """int64[count]: the group of every row; rows in no group have one of their own."""
    group_of = np.arange(count) + len(groups)
    for number, rows in enumerate(groups):
        group_of[rows] = number
    return group_of


@dataclass(frozen=True)
class Agreement:
    """Of the pairs put into one group, the share that belong together (precision), and of those
    that belong together, the share put into one group (recall); adjusted Rand index (Hubert &
    Arabie 1985), 0 by chance and 1 for equal groupings."""

    precision: float
    recall: float
    adjusted_rand: float


def agreement(true: np.ndarray, found: np.ndarray) -> Agreement:
    """Compare two groupings, int[n] each. Where no pair is joined, precision is 1 (no mistake)."""
    (_, wrong), (missed, right) = pair_confusion_matrix(true, found)
    precision = right / (right + wrong) if right + wrong else 1.0
    recall = right / (right + missed) if right + missed else 1.0
    return Agreement(float(precision), float(recall), float(adjusted_rand_score(true, found)))
