"""Pair tables: read, validate and write the competition's CSV files.

A pair frame has exactly the columns `id`, `category`, `query1`, `query2` (str) and `label`
(int64; -1 = unlabelled), a default RangeIndex, and the rows in the order of the file.
"""

import csv
import io
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..errors import UserError
from ..files import write_text
from .text_table import records

COLUMNS = ("id", "category", "query1", "query2", "label")
UNLABELLED = -1

MOST_CHARACTERS = 10_000  # of a question; what is longer is a file read wrongly

_HEADER = ",".join(COLUMNS)
_NOTHING = {"", "-", "--", "/", "nan", "null", "none", "nil", "n/a", "#n/a", "na", "nat"}
_SYNONYMS = {"question1": "query1", "question2": "query2"}


@dataclass(frozen=True)
class PairTable:
    """A validated pair frame, the file it came from, and how many rows had no label.

    `nothing` are the lines on which a question is nothing, or a word that stands for nothing.
    """

    frame: pd.DataFrame
    path: Path
    unlabelled_dropped: int
    nothing: tuple[int, ...] = ()


def read_pairs(path: Path, *, labelled: bool) -> PairTable:
    """Read and validate a pair table.

    UTF-8 (with or without BOM), GB18030 and UTF-16 with BOM; any line ends; columns in any
    order, further ones ignored; `question1`/`question2` for `query1`/`query2`. Header names and
    labels are NFKC-normalised (`１` is 1). Questions, ids and categories stay verbatim. A missing
    `category` is "", a missing `id` the row's number in the returned frame, from "0".

    Args:
        labelled: True (train, dev): rows whose label is empty, -1 or NaN are dropped and counted.
            False (test): labels are optional, and every row is kept, also without a question.

    Raises:
        UserError: the file cannot be read as such a table; names file, line and column.
    """
    rows = list(records(path))
    # Spreadsheets leave lines of bare commas under a table.
    while rows and not any(rows[-1][1]):
        rows.pop()
    if not rows:
        raise UserError(f"{path}: the file is empty. It needs a header such as {_HEADER}.")
    header_line, header = rows.pop(0)
    place = _find_columns(header, f"{path}, line {header_line}", labelled)
    line_of_id: dict[str, int] = {}
    pairs: list[dict[str, str | int]] = []
    nothing = []
    for line, fields in rows:
        row = {name: fields[index] for name, index in place.items()}
        for name, fault in _faults(row, line_of_id, labelled):
            raise UserError(f"{path}, line {line}, column {header[place[name]]}: {fault}")
        line_of_id[row.get("id", "")] = line
        if is_nothing(row["query1"]) or is_nothing(row["query2"]):
            nothing.append(line)
        label = int(_number(row.get("label", "")))
        if label != UNLABELLED or not labelled:
            pairs.append({"id": str(len(pairs)), "category": "", **row, "label": label})
    if not pairs:
        missing = f"none of its {len(rows)} rows has a label" if rows else "it has no rows"
        raise UserError(f"{path}: {missing}. Use a file with at least one pair.")
    frame = pd.DataFrame(pairs, columns=list(COLUMNS)).astype({"label": "int64"})
    return PairTable(frame, path, len(rows) - len(pairs), tuple(nothing))


def is_nothing(question: str) -> bool:
    """Whether a question is blank, or a word by which spreadsheets and pandas say "nothing"."""
    return unicodedata.normalize("NFKC", question).strip().lower() in _NOTHING


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


def _find_columns(header: list[str], where: str, labelled: bool) -> dict[str, int]:
    """Position of each known column in the header."""
    place: dict[str, int] = {}
    for index, written in enumerate(header):
        name = unicodedata.normalize("NFKC", written).strip().lower()
        name = _SYNONYMS.get(name, name)
        if name in place:
            raise UserError(
                f"{where}: columns '{header[place[name]]}' and '{written}' both mean {name}. "
                "Keep one of them."
            )
        if name in COLUMNS:
            place[name] = index
    for name in ("query1", "query2", "label") if labelled else ("query1", "query2"):
        if name not in place:
            raise UserError(
                f"{where}: there is no column '{name}' (found: {', '.join(header)}). "
                f"The first line must name the columns, as in {_HEADER}."
            )
    return place


def _faults(
    row: dict[str, str], line_of_id: dict[str, int], labelled: bool
) -> Iterator[tuple[str, str]]:
    """What is wrong with a row: column, fault and remedy. `line_of_id` has the rows before it."""
    for name in ("query1", "query2"):
        if labelled and not row[name].strip():
            yield name, "the question is empty. Fill it in or remove the row."
        if len(row[name]) > MOST_CHARACTERS:
            yield (
                name,
                f"the question has {len(row[name]):,} characters; {MOST_CHARACTERS:,} are the most "
                "that is read. Is this the right column? Shorten the text, or remove the row.",
            )
    if "id" in row and not row["id"].strip():
        yield "id", "the id is empty. Fill it in, or remove the whole column to number the rows."
    if "id" in row and row["id"] in line_of_id:
        first = f"'{row['id']}' also stands on line {line_of_id[row['id']]}"
        yield "id", f"{first}. Every row needs an id of its own."
    if _number(row.get("label", "")) not in (0, 1, UNLABELLED):
        remedy = "Write 0 or 1, or leave it empty where it is unknown"
        yield "label", f"'{row['label']}' is not a label. {remedy}."


def _number(written: str) -> float:
    """A label as a number: -1 where it is empty or NaN, and NaN where it is none."""
    text = unicodedata.normalize("NFKC", written).strip().lower()
    try:
        return UNLABELLED if text in ("", "nan") else float(text)
    except ValueError:
        return float("nan")
