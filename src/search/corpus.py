"""Read a corpus of questions: CSV, TSV, JSON, JSONL, or plain text with one question a line."""

import json
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..data.text_table import lines, records
from ..errors import UserError

_PAIRS = [["query1", "query2"], ["question1", "question2"]]
_SINGLES = ["question", "query", "问题", "sentence", "text", *_PAIRS[0], *_PAIRS[1]]


@dataclass(frozen=True)
class Corpus:
    """The distinct questions of a file, in the order of their first appearance."""

    path: Path
    questions: list[str]  # n texts without white space at their ends
    counts: np.ndarray  # int64[n], how often each of them stands in the file
    wordless: int  # entries left out because no letter or digit is in them (blank ones, emoji)

    @property
    def repeated(self) -> int:
        """Entries that only repeat another one."""
        return int(self.counts.sum()) - len(self.questions)


def has_words(text: str) -> bool:
    """Whether a text has a letter or a digit. One without says nothing that can be compared."""
    return any(character.isalnum() for character in text)


def is_readable(text: str) -> bool:
    """Whether a text is whole: half of a surrogate pair (an emoji cut in two) has no encoding."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def read_questions(path: Path, column: str | None = None) -> Corpus:
    """Read a file line by line; its distinct entries are all that is held in memory.

    A table (.csv, .tsv; commas, semicolons or tabs) needs a header that names a column `question`,
    `query`, `问题`, `sentence` or `text` (the first of these that is there: the `text` beside a
    `question` is often its answer), or `query1` and `query2` (both are read); a single column of
    another name is a plain list. A line of .jsonl and an item of .json is a string or an object
    with such keys. Any of them may be a .gz. UTF-8, UTF-16 with BOM, or GB18030.

    Args:
        column: the one to read, where its name is none of these.

    Raises:
        UserError: the file cannot be read, mixes encodings, or holds no question.
    """
    counts = Counter(entry.strip() for entry in _entries(path, column))
    wordless = sum(counts.pop(text) for text in list(counts) if not has_words(text))
    if not counts:
        state = (
            f"none of its {wordless} entries has a letter or digit" if wordless else "it is empty"
        )
        raise UserError(f"{path}: no question in this file ({state}). Give one question a line.")
    return Corpus(path, list(counts), np.fromiter(counts.values(), np.int64), wordless)


def _entries(path: Path, column: str | None) -> Iterator[str]:
    inner = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    suffix = inner.suffix.lower()
    if suffix in (".csv", ".tsv"):
        return _table_entries(path, column)
    if suffix == ".json":
        return _array_entries(path, column)
    if suffix in (".jsonl", ".ndjson"):
        return _json_entries(path, column)
    return (entry for line in lines(path) for entry in line.splitlines())


def _table_entries(path: Path, column: str | None) -> Iterator[str]:
    rows = records(path)
    line, header = next(rows, (1, []))
    names = [unicodedata.normalize("NFKC", name).strip().lower() for name in header]
    columns = [names.index(name) for name in _question_columns(names, column)]
    if len(header) == 1 and not columns and column is None:  # a plain list that is called .csv
        columns = [0]
        yield header[0]
    if header and not columns:
        raise UserError(
            f"{path}, line {line}: there is no column of questions (found: {', '.join(header)}). "
            "Choose one of them by --column NAME, or call it 'question' ('query1' and 'query2' in "
            "a table of pairs)."
        )
    for _, fields in rows:
        if any(fields):
            yield from (fields[index] for index in columns)


def _question_columns(names: Collection[str], column: str | None) -> list[str]:
    """Those of `names` that hold questions: a pair of columns, else the first single one."""
    if column is not None:
        wanted = unicodedata.normalize("NFKC", column).strip().lower()
        return [name for name in (column, wanted) if name in names][:1]
    choices = [*_PAIRS, *([name] for name in _SINGLES)]
    return next((choice for choice in choices if all(name in names for name in choice)), [])


def _json_entries(path: Path, column: str | None) -> Iterator[str]:
    for number, line in enumerate(lines(path), start=1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        yield from _json_questions(_parsed(line, place), column, place)


def _array_entries(path: Path, column: str | None) -> Iterator[str]:
    """The items of one JSON array; a .json of several values is read as JSONL."""
    text = "".join(lines(path))
    if not text.lstrip().startswith("["):
        yield from _json_entries(path, column)
        return
    for number, item in enumerate(_parsed(text, str(path)), start=1):
        yield from _json_questions(item, column, f"{path}, item {number}")


def _parsed(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{place}: this is not JSON ({error}).") from error


def _json_questions(content: Any, column: str | None, place: str) -> list[str]:
    found = [content]
    if isinstance(content, dict):
        found = [content[name] for name in _question_columns(content, column)]
    if not found or not all(isinstance(text, str) and is_readable(text) for text in found):
        keys = f" (found: {', '.join(content)})" if isinstance(content, dict) else ""
        raise UserError(
            f"{place}: no question here{keys}. Write a string, or an object with a string under "
            "'question' (or 'query1' and 'query2'), or name its key by --column."
        )
    return found
