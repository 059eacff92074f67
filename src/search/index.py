"""A corpus, encoded once: vectors beside the file, mapped into memory, made again on a change."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from ..errors import UserError
from ..files import atomic_path, read_json, write_json
from ..models.registry import code_of_member
from ..step import Step
from .corpus import Corpus, read_questions
from .encode import encode
from .matcher import Matcher
from .nearest import (
    EXACT_LIMIT,
    approximate_nearest,
    build_cells,
    exact_nearest,
    read_cells,
)

VECTORS, CELLS, FACTS = "vectors.npy", "cells.faiss", "facts.json"
# fill(questions, out): fills out, float32[n, H], with vectors of length 1.
Fill = Callable[[list[str], np.ndarray], Any]


@dataclass(frozen=True)
class Index:
    """A corpus and its vectors.

    Attributes:
        vectors: float32[n, H] of length 1, a memory map.
        cells: the inverted file of a corpus beyond EXACT_LIMIT, else None.
        encode_seconds: what encoding took when the index was made.
        is_new: whether that was just now.
    """

    corpus: Corpus
    vectors: np.ndarray
    cells: faiss.Index | None
    encode_seconds: float
    is_new: bool

    def __len__(self) -> int:
        return len(self.vectors)

    def nearest(self, queries: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
        """Cosines float32[Q, k] and rows int64[Q, k], best first; row -1: nothing found."""
        if self.cells is None:
            return exact_nearest(queries, self.vectors, top)
        return approximate_nearest(queries, self.vectors, self.cells, top)


def open_index(path: Path, matcher: Matcher, column: str | None = None) -> Index:
    """The index of a corpus, from its folder `NAME.index` beside the file or made now.

    It is made again when the corpus, its `column`, the weights, the settings or the code that makes
    it change.

    Raises:
        UserError: the corpus cannot be read, or its folder not be written.
    """
    title = f"encode {path.name}"
    return build_index(
        path,
        matcher.encoder.hidden_size,
        matcher.identity,
        lambda questions, out: matcher.encode(questions, out, title),
        [encode, *code_of_member(matcher.bi.member)],
        column,
    )


def build_index(
    path: Path,
    width: int,
    model: dict[str, Any],
    fill: Fill,
    code: Sequence[Callable] = (),
    column: str | None = None,
) -> Index:
    """`open_index` for any encoder.

    Args:
        width: components of a vector; `fill` writes them.
        model: what identifies the encoder, and `code`: the functions that it is made of.
        column: of the corpus, see `read_questions`.
    """
    corpus = read_questions(path, column)
    folder = path.with_name(f"{path.name}.index")
    if folder.is_dir() and any(folder.iterdir()) and not _is_ours(folder):
        raise UserError(
            f"{folder} is in the way: the index would be written there. Move it, or the corpus."
        )
    step = Step(
        f"index {path.name} ({len(corpus.questions):,} questions)",
        folder,
        partial(_write_index, corpus, width, fill),
        reads=[path],
        settings={"model": model, "exact_limit": EXACT_LIMIT, "column": column},
        code=[read_questions, *code],
    )
    try:
        is_new = step.run()
    except OSError as error:
        raise UserError(
            f"{folder}: the index cannot be written ({error.strerror}). Copy the corpus to a "
            "folder on a disk with room that you may write to."
        ) from error
    cells = folder / CELLS
    # Mode "c": nothing is written back, and torch does not warn of an array it may not write to.
    return Index(
        corpus,
        np.load(folder / VECTORS, mmap_mode="c", allow_pickle=False),
        read_cells(cells) if cells.is_file() else None,
        read_json(folder / FACTS)["encode_seconds"],
        is_new,
    )


def _is_ours(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("done.json", "pending.json"))


def _refuse_without_room(needed: int, folder: Path) -> None:
    """A map of a file that a full disk cannot hold would end the process without a word."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"{folder}: the vectors need {needed / 1e9:,.2f} GB, the disk has {free / 1e9:,.2f} GB "
            "left. Copy the corpus to a folder on a disk with room."
        )


def _write_index(corpus: Corpus, width: int, fill: Fill, folder: Path) -> None:
    started = time.perf_counter()
    _refuse_without_room(4 * width * len(corpus.questions), folder)
    with atomic_path(folder / VECTORS) as temporary:
        vectors = np.lib.format.open_memmap(
            temporary, "w+", np.float32, (len(corpus.questions), width)
        )
        fill(corpus.questions, vectors)
        seconds = time.perf_counter() - started
        vectors.flush()
        if len(vectors) > EXACT_LIMIT:
            with atomic_path(folder / CELLS) as cells:
                build_cells(vectors, cells)
        del vectors
    write_json(folder / FACTS, {"encode_seconds": seconds})
