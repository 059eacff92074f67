"""Labelled duplicates: the groups that they form, and whether vectors find them."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..data.graph import components


def labelled_groups(frame: pd.DataFrame) -> tuple[list[str], np.ndarray]:
    """The distinct questions of a labelled pair frame and int64[n], their groups.

    Questions joined by pairs labelled 1 are one group. Questions of different groups are taken to
    differ, although most such pairs were never labelled.
    """
    same = frame.loc[frame["label"] == 1, ["query1", "query2"]]
    questions = list(pd.unique(pd.concat([frame["query1"], frame["query2"]])))
    alone = pd.DataFrame({"query1": questions, "query2": questions})
    group = components(alone, same)[: len(questions)]
    return questions, group


@dataclass(frozen=True)
class Retrieval:
    """Every question with a labelled duplicate looks for one among all others.

    Attributes:
        queries: questions that have one; `among` how many questions there are.
        recall_at_1: the share whose nearest neighbour is a duplicate.
        mrr: mean of 1 / rank of the nearest duplicate (Voorhees 1999).
    """

    queries: int
    among: int
    recall_at_1: float
    mrr: float


def retrieval(vectors: np.ndarray, groups: np.ndarray) -> Retrieval:
    """Rank all questions by their cosine to each.

    Args:
        vectors: float32[n, H] of length 1; groups: int[n], equal for duplicates, at least two of
            them.
    """
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -np.inf)
    same = groups[:, None] == groups
    np.fill_diagonal(same, False)
    asking = np.flatnonzero(same.any(axis=1))
    best = np.where(same[asking], scores[asking], -np.inf).max(axis=1)
    ranks = 1 + (scores[asking] > best[:, None]).sum(axis=1)
    return Retrieval(
        len(asking), len(vectors), float(np.mean(ranks == 1)), float(np.mean(1 / ranks))
    )
