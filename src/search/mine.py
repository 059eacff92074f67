"""The most similar pairs among all questions of a corpus."""

import numpy as np

from ..errors import UserError
from .index import Index

_ROWS = 256  # questions compared with all others at a time: 0.5 GB with 100,000 of them
_NEIGHBOURS = 10  # a question, where the search is approximate


def mine(index: Index, top: int) -> list[tuple[float, int, int]]:
    """The `top` pairs (cosine, row, row) of distinct questions with the highest cosine.

    Exact up to EXACT_LIMIT questions, in blocks of rows. Beyond that only each question's nearest
    neighbours are candidates.

    Raises:
        UserError: there is but one question.
    """
    if len(index) < 2:
        raise UserError(
            f"{index.corpus.path}: pairs need two different questions, and this file has one."
        )
    if index.cells is not None:
        return _mine_neighbours(index, top)
    return _mine_blocks(np.asarray(index.vectors), top)


def _mine_blocks(vectors: np.ndarray, top: int) -> list[tuple[float, int, int]]:
    scores, first, second = np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0, np.int64)
    for start in range(0, len(vectors), _ROWS):
        block = vectors[start : start + _ROWS] @ vectors[start:].T
        block[np.tril_indices(len(block), m=block.shape[1])] = -np.inf  # itself, and earlier rows
        floor = scores.min() if len(scores) == top else -np.inf
        above = np.flatnonzero(block > floor)
        if len(above) > top:
            above = above[np.argpartition(-block.flat[above], top - 1)[:top]]
        rows, columns = np.unravel_index(above, block.shape)
        scores = np.concatenate([scores, block[rows, columns]])
        first = np.concatenate([first, start + rows])
        second = np.concatenate([second, start + columns])
        best = np.lexsort((second, first, -scores))[:top]
        scores, first, second = scores[best], first[best], second[best]
    return list(zip(scores.tolist(), first.tolist(), second.tolist(), strict=True))


def _mine_neighbours(index: Index, top: int) -> list[tuple[float, int, int]]:
    best: list[tuple[float, int, int]] = []
    for start in range(0, len(index), _ROWS):
        scores, rows = index.nearest(index.vectors[start : start + _ROWS], _NEIGHBOURS + 1)
        own = np.arange(start, start + len(rows))[:, None]
        # The lower row reports the pair; so does the higher one, because neighbours are not mutual.
        keep = (rows >= 0) & (rows != own)
        first, second = np.minimum(own, rows)[keep], np.maximum(own, rows)[keep]
        found = set(zip(scores[keep].tolist(), first.tolist(), second.tolist(), strict=True))
        unique = {(i, j): score for score, i, j in [*best, *found]}
        best = sorted(((s, i, j) for (i, j), s in unique.items()), key=lambda p: (-p[0], *p[1:]))
        best = best[:top]
    return best
