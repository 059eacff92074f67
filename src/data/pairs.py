"""Pair tables: read, validate and write the competition's CSV files.

A pair frame has exactly the columns `id`, `category`, `query1`, `query2` (str) and `label`
(int64; -1 = unlabelled), a default RangeIndex, and the rows in the order of the file.
"""

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..errors import UserError
from ..files import write_text
from .text_table import records

COLUMNS = ("id", "category", "query1", "query2", "label")
UNLABELLED = -1

_SYNONYMS = {"question1": "query1", "question2": "query2"}


@dataclass(frozen=True)
class PairTable:
    """A validated pair frame, the file it came from, and how many rows had no label."""

    frame: pd.DataFrame
    path: Path
    unlabelled_dropped: int


def read_pairs(path: Path, *, labelled: bool) -> PairTable:
    """Read and validate a pair table.

    UTF-8 (with or without BOM), GB18030 and UTF-16 with BOM; any line ends; columns in any
    order, further ones ignored; `question1`/`question2` for `query1`/`query2`. Header names and
    labels are NFKC-normalised (`１` is 1). Questions, ids and categories stay verbatim. A missing
    `category` is "", a missing `id` the row's number in the returned frame, from "0".

    Args:
        labelled: True (train, dev): rows whose label is empty, -1 or NaN are dropped and counted.
            False (test): labels are optional, and every row is kept.

    Raises:
        UserError: the file cannot be read as such a table; names file, line and column.
    """
    rows = list(records(path))
    # Spreadsheets leave lines of bare commas under a table.
    while len(rows) > 1 and not any(field.strip() for field in rows[-1][1]):
        rows.pop()
    if not rows:
        raise UserError(f"{path}: the file is empty. It needs a header such as {_header()}.")
    header_line, header = rows.pop(0)
    place = _find_columns(header, header_line, path, labelled)

    columns: dict[str, list[str | int]] = {name: [] for name in COLUMNS}
    line_of_id: dict[str, int] = {}
    dropped = 0
    for line, fields in rows:
        if len(fields) != len(header):
            raise UserError(
                f"{path}, line {line}: {len(fields)} fields where the header has {len(header)}. "
                'Put a question that contains a comma in double quotes ("...").'
            )
        row: dict[str, str | int] = {name: fields[index] for name, index in place.items()}
        for name in ("query1", "query2"):
            if not fields[place[name]].strip():
                raise UserError(
                    f"{path}, line {line}, column {header[place[name]]}: the question is empty. "
                    "Fill it in or remove the row."
                )
        if "id" in place:
            _check_id(fields[place["id"]], line, line_of_id, path)
        row["label"] = UNLABELLED
        if "label" in place:
            row["label"] = _parse_label(fields[place["label"]], line, path)
        if labelled and row["label"] == UNLABELLED:
            dropped += 1
            continue
        row.setdefault("id", str(len(columns["id"])))
        row.setdefault("category", "")
        for name in COLUMNS:
            columns[name].append(row[name])
    if not columns["id"]:
        missing = f"none of its {dropped} rows has a label" if dropped else "it has no rows"
        raise UserError(f"{path}: {missing}. Use a file with at least one pair.")
    frame = pd.DataFrame(columns).astype({"label": "int64"})
    return PairTable(frame, path, dropped)


def write_pairs(frame: pd.DataFrame, path: Path) -> None:
    """Write a pair frame as CSV, atomically: UTF-8, LF, the columns in their fixed order.

    Further columns, such as the `source` of augmentation, follow; `read_pairs` ignores them.
    """
    columns = [*COLUMNS, *(name for name in frame.columns if name not in COLUMNS)]
    write_text(path, csv_text([columns, *frame[columns].itertuples(index=False)]))


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV with "\n" line ends, which `csv.reader` reads back verbatim."""
    # With "\n" as terminator Python 3.11's writer leaves "\r" unquoted, which a reader would take
    # for a line end. So its own terminator "\r\n" is kept in force and exchanged row by row.
    lines = []
    for row in rows:
        buffer = io.StringIO(newline="")
        csv.writer(buffer).writerow(row)
        lines.append(buffer.getvalue().removesuffix("\r\n") + "\n")
    return "".join(lines)


def _header() -> str:
    return ",".join(COLUMNS)


def _find_columns(header: list[str], line: int, path: Path, labelled: bool) -> dict[str, int]:
    """Position of each known column in the header."""
    place: dict[str, int] = {}
    for index, written in enumerate(header):
        name = unicodedata.normalize("NFKC", written).strip().lower()
        name = _SYNONYMS.get(name, name)
        if name not in COLUMNS:
            continue
        if name in place:
            raise UserError(
                f"{path}, line {line}: columns '{header[place[name]]}' and '{written}' both mean "
                f"{name}. Keep one of them."
            )
        place[name] = index
    for name in ("query1", "query2", "label") if labelled else ("query1", "query2"):
        if name not in place:
            raise UserError(
                f"{path}, line {line}: there is no column '{name}' (found: {', '.join(header)}). "
                f"The first line must name the columns, as in {_header()}."
            )
    return place


def _check_id(value: str, line: int, line_of_id: dict[str, int], path: Path) -> None:
    """Remember `value`; raise UserError where it is empty or was seen before."""
    if not value.strip():
        raise UserError(
            f"{path}, line {line}, column id: the id is empty. "
            "Fill it in, or remove the whole column to number the rows."
        )
    if value in line_of_id:
        raise UserError(
            f"{path}, line {line}, column id: '{value}' also stands on line {line_of_id[value]}. "
            "Every row needs an id of its own."
        )
    line_of_id[value] = line


def _parse_label(written: str, line: int, path: Path) -> int:
    """0, 1, or -1 for a row without label (empty, -1 or NaN)."""
    text = unicodedata.normalize("NFKC", written).strip()
    if not text or text.lower() == "nan":
        return UNLABELLED
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value not in (0, 1, UNLABELLED):
        raise UserError(
            f"{path}, line {line}, column label: '{written}' is not a label. "
            "Write 0 or 1, or leave it empty where it is unknown."
        )
    return int(value)
