"""Nearest vectors: exact up to 100,000 of them, beyond that through an inverted file of faiss."""

from pathlib import Path

import faiss
import numpy as np

EXACT_LIMIT = 100_000
_BLOCK = 65_536  # vectors added at a time
_CELL_SAMPLE = 40  # vectors a cell for k-means; faiss warns below 39
_PROBES = 32  # cells searched a query
_RESCORED = 4  # candidates a result whose exact cosine is computed


def exact_nearest(queries: np.ndarray, vectors: np.ndarray, top: int):
    """Cosines float32[Q, k] and rows int64[Q, k], best first; k = min(top, n).

    Args:
        queries: float32[Q, H] of length 1.
        vectors: float32[n, H] of length 1, possibly a memory map.
    """
    return faiss.knn(
        np.ascontiguousarray(queries, np.float32),
        vectors,
        min(top, len(vectors)),
        metric=faiss.METRIC_INNER_PRODUCT,
    )


def build_cells(vectors: np.ndarray, target: Path) -> None:
    """Write an inverted file over 8-bit codes of `vectors`, a quarter of their size.

    k-means cells (Jégou et al. 2011, "Product quantization for nearest neighbor search", section
    4, the inverted file) with scalar codes; `approximate_nearest` rescores with the vectors.
    """
    count, width = vectors.shape
    cells = int(2 * np.sqrt(count))
    quantizer = faiss.IndexFlatIP(width)
    index = faiss.IndexIVFScalarQuantizer(
        quantizer, width, cells, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT
    )
    rows = np.random.default_rng(0).choice(count, min(count, cells * _CELL_SAMPLE), replace=False)
    index.train(vectors[np.sort(rows)])
    for start in range(0, count, _BLOCK):
        index.add(np.ascontiguousarray(vectors[start : start + _BLOCK]))
    faiss.write_index(index, str(target))


def read_cells(path: Path) -> faiss.Index:
    """Open the inverted file; its lists stay on disk, mapped into memory."""
    index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
    index.nprobe = _PROBES  # type: ignore[attr-defined]  # of an inverted file
    return index


def approximate_nearest(queries: np.ndarray, vectors: np.ndarray, cells: faiss.Index, top: int):
    """As `exact_nearest`, among the vectors of the cells nearest to each query.

    Where the cells hold fewer than k, the missing ones have row -1 and cosine -inf.
    """
    top = min(top, len(vectors))
    _, candidates = cells.search(np.ascontiguousarray(queries, np.float32), _RESCORED * top)
    scores = np.full(candidates.shape, -np.inf, np.float32)
    for row, (query, found) in enumerate(zip(queries, candidates, strict=True)):
        scores[row, found >= 0] = vectors[found[found >= 0]] @ query
    order = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    return np.take_along_axis(scores, order, 1), np.take_along_axis(candidates, order, 1)
