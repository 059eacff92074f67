"""Labelled duplicates: the groups that they form, and whether vectors find them."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..data.graph import components, wording


def labelled_groups(frame: pd.DataFrame) -> tuple[list[str], np.ndarray]:
    """The distinct questions of a labelled pair frame and int64[n], their groups.

    Questions joined by pairs labelled 1 are one group, and so are two spellings of one question,
    which differ in punctuation or white space only. Questions of different groups are taken to
    differ, although most such pairs were never labelled.
    """
    same = frame.loc[frame["label"] == 1, ["query1", "query2"]]
    questions = list(pd.unique(pd.concat([frame["query1"], frame["query2"]])))
    alone = pd.DataFrame({"query1": questions, "query2": questions})
    group = components(alone, same, key=wording)[: len(questions)]
    return questions, group


@dataclass(frozen=True)
class Retrieval:
    """Every question with a labelled duplicate has looked for one among all others.

    Attributes:
        ranks: int64[q], the place of the nearest duplicate, 1 is the best. Whatever else is just
            as near goes before it, so that vectors that are all the same find nothing.
        groups: int64[q], the group of the question that looked.
    """

    ranks: np.ndarray
    groups: np.ndarray

    @property
    def recall_at_1(self) -> float:
        """The share whose nearest neighbour is a duplicate."""
        return float(np.mean(self.ranks == 1))

    @property
    def mrr(self) -> float:
        """Mean of 1 / rank (Voorhees 1999)."""
        return float(np.mean(1 / self.ranks))


def retrieval(vectors: np.ndarray, groups: np.ndarray) -> Retrieval:
    """Rank all questions by their cosine to each; one that is no number is the lowest.

    Args:
        vectors: float32[n, H] of length 1; groups: int[n], equal for duplicates.
    """
    with np.errstate(invalid="ignore"):
        scores = vectors @ vectors.T
    scores[~np.isfinite(scores)] = -np.inf
    same = groups[:, None] == groups
    others = ~same
    np.fill_diagonal(same, False)
    asking = np.flatnonzero(same.any(axis=1))
    best = np.where(same[asking], scores[asking], -np.inf).max(axis=1)
    ranks = 1 + (others[asking] & (scores[asking] >= best[:, None])).sum(axis=1)
    return Retrieval(ranks, groups[asking])
