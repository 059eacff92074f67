"""The submission file: `id,label`, the test file's ids in its order, nothing else."""

import csv
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ..data.pairs import csv_text, read_pairs
from ..errors import UserError
from ..files import atomic_path
from ..layout import Layout
from .combine import Decision


def submit_test(layout: Layout, targets: Sequence[Path], folder: Path) -> None:
    """Decide the test file's pairs; write the submission to the first target, copy it to others."""
    first, *copies = targets
    labels = Decision.read(layout.decision_file).decide(layout.unseen("test"))
    test = read_pairs(layout.table_file("test"), labelled=False).frame
    write_submission(test, labels, first)
    for copy in copies:
        with atomic_path(copy) as temporary:
            shutil.copyfile(first, temporary)


def write_submission(test: pd.DataFrame, labels: np.ndarray, target: Path) -> None:
    """Write and validate, then put in place; an invalid file never takes the place of a valid one.

    Args:
        test: pair frame of the test file.
        labels: int[P], 0 or 1.
    """
    with atomic_path(target) as temporary:
        rows = zip(test["id"], labels.tolist(), strict=True)
        content = csv_text([("id", "label"), *rows])
        temporary.write_text(content, encoding="utf-8", newline="")
        validate_submission(temporary, test)


def validate_submission(path: Path, test: pd.DataFrame) -> None:
    """Check a submission against the test file.

    Raises:
        UserError: another header, another number of rows, an id that is missing, doubled or out
            of order, or a label other than 0 and 1. Names the line.
    """
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    if not rows or rows[0] != ["id", "label"]:
        raise UserError(f"{path}, line 1: a submission starts with the header id,label.")
    if len(rows) - 1 != len(test):
        raise UserError(f"{path}: {len(rows) - 1} rows, but the test file has {len(test)}.")
    for line, (row, expected) in enumerate(zip(rows[1:], test["id"], strict=True), start=2):
        if len(row) != 2 or row[0] != expected:
            raise UserError(
                f"{path}, line {line}, column id: '{','.join(row)}' stands where the test file "
                f"has the id '{expected}'. Keep its ids and their order."
            )
        if row[1] not in ("0", "1"):
            raise UserError(f"{path}, line {line}, column label: '{row[1]}' is not 0 or 1.")
