"""The submission file: `id,label`, the test file's ids in its order, nothing else."""

import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from ..config import EnsembleConfig
from ..data.pairs import csv_text, is_nothing
from ..errors import UserError
from ..files import atomic_path, write_json
from ..layout import Layout
from .choose import choose
from .combine import Decision
from .predicted import Predicted


def submit_test(
    layout: Layout,
    setting: EnsembleConfig,
    both: Mapping[str, Path],
    targets: Sequence[Path],
    folder: Path,
) -> None:
    """Decide the test file in both ways; write choice.json, which says which one is delivered.

    Args:
        both: where the decisions pair by pair ("pairs") and in groups ("groups") go.
        targets: where the one that is chosen goes.
    """
    decision, test = Decision.read(layout.decision_file), Predicted.unseen(layout, "test")
    labels = {"pairs": decision.decide(test.logits), "groups": decision.decide_groups(test)}
    cross_fitted = np.load(layout.cross_fitted_file, allow_pickle=False)
    choice = choose(setting, layout.train(), cross_fitted, test.frame)
    print(f"── decided as {choice.way}: {choice.why}", file=sys.stderr)
    for way, path in both.items():
        write_submission(test.frame, labels[way], path)
    for path in targets:
        write_submission(test.frame, labels[choice.way], path)
    write_json(folder / "choice.json", asdict(choice))


def write_submission(test: pd.DataFrame, labels: np.ndarray, target: Path) -> np.ndarray:
    """Write and validate, then put in place; an invalid file never takes the place of a valid one.

    Args:
        test: pair frame of the test file.
        labels: int[P], 0 or 1.

    Returns:
        The labels as they are written: a pair that lacks a question is different.
    """
    questions = zip(test["query1"], test["query2"], strict=True)
    lacking = [is_nothing(first) or is_nothing(second) for first, second in questions]
    written = [0 if is_none else n for n, is_none in zip(labels.tolist(), lacking, strict=True)]
    with atomic_path(target) as temporary:
        content = csv_text([("id", "label"), *zip(test["id"], written, strict=True)])
        temporary.write_text(content, encoding="utf-8", newline="")
        validate_submission(temporary, test)
    return np.array(written)


def refuse_to_replace(target: Path, source: Path, force: bool) -> None:
    """See that writing a submission to `target` destroys nothing.

    Raises:
        UserError: it is the file that is read, by whatever name; or, without `force`, a file that
            is no submission.
    """
    if not target.exists():
        return
    if source.exists() and target.samefile(source):
        raise UserError(f"{target}: this file is read. Name another one for the labels.")
    with open(target, "rb") as file:
        is_submission = file.readline(100).strip() == b"id,label"
    if not is_submission and not force:
        raise UserError(
            f"{target}: this file is there and is no submission. Name another one, or replace it "
            "with --force."
        )


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
