"""The most similar pairs among all questions of a corpus."""

import numpy as np
import torch
from sentence_transformers.util import dot_score, paraphrase_mining_embeddings

from ..errors import UserError
from .index import Index

_ROWS = 1_000  # questions compared with all others at a time: 400 MB with 100,000 of them
_NEIGHBOURS = 10  # a question, where the search is approximate


def mine(index: Index, top: int) -> list[tuple[float, int, int]]:
    """The `top` pairs (cosine, row, row) of distinct questions with the highest cosine.

    Exact up to EXACT_LIMIT questions: a pair among the best `top` of all is among the best `top`
    of its questions. Beyond, only each question's nearest neighbours are candidates.

    Raises:
        UserError: there is but one question.
    """
    if len(index) < 2:
        raise UserError(
            f"{index.corpus.path}: pairs need two different questions, and this file has one."
        )
    if index.cells is not None:
        return _mine_neighbours(index, top)
    vectors = torch.from_numpy(np.asarray(index.vectors))
    pairs = paraphrase_mining_embeddings(
        vectors, query_chunk_size=_ROWS, max_pairs=top, top_k=top, score_function=dot_score
    )
    return [(score, first, second) for score, first, second in pairs]


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
