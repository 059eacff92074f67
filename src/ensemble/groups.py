"""Groups: a question and its candidates, the pairs of a table that share their query1."""

import numpy as np
import pandas as pd

from ..data.graph import question_key

MOST = 15  # pairs in a group; a larger one, and a pair that is alone, is decided pair by pair


def group_sizes(frame: pd.DataFrame) -> np.ndarray:
    """int64[P]: with how many pairs, itself included, a pair shares its query1."""
    keys = frame["query1"].map(question_key)
    return keys.groupby(keys).transform("size").to_numpy(np.int64)


def groups_by_size(frame: pd.DataFrame) -> list[np.ndarray]:
    """Row numbers int64[G, n] of the groups of n pairs, for each n from 2 to `MOST` that occurs.

    They are ordered by text and id, so that a shuffled file gives the same groups.
    """
    keys = frame["query1"].map(question_key).to_numpy(str)
    order = np.lexsort((frame["id"].to_numpy(str), frame["query2"].to_numpy(str), keys))
    sizes = group_sizes(frame)[order]
    return [order[sizes == n].reshape(-1, n) for n in np.unique(sizes) if 2 <= n <= MOST]


def candidate_rows(frame: pd.DataFrame) -> np.ndarray:
    """int64[M, 2]: the rows of every two candidates of a group, in the order of `groups_by_size`.

    The same order holds in a part of the table that is made of whole groups.
    """
    found = [np.zeros((0, 2), np.int64)]
    for rows in groups_by_size(frame):
        upper = np.triu_indices(rows.shape[1], k=1)
        found.append(np.stack([rows[:, side].ravel() for side in upper], axis=1))
    return np.concatenate(found)


def candidate_pairs(frame: pd.DataFrame) -> pd.DataFrame:
    """The pair frame of `candidate_rows`: a candidate as query1, another one as query2."""
    first, second = frame["query2"].to_numpy(object)[candidate_rows(frame)].T
    pairs = pd.DataFrame({"query1": first, "query2": second}, dtype=object)
    return pairs.assign(id=[str(row) for row in range(len(pairs))], category="", label=-1)
