"""Read a corpus of questions: CSV, TSV, JSONL, or plain text with one question a line."""

import json
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..data.text_table import open_text, records
from ..errors import UserError

_PAIRS = (("query1", "query2"), ("question1", "question2"))
_COLUMNS = ("question", "query", "问题", "sentence", "text")  # the first that is there
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_JSON_LINES = {".jsonl", ".ndjson"}


@dataclass(frozen=True)
class Corpus:
    """The distinct questions of a file, in the order of their first appearance.

    Attributes:
        questions: n texts without white space at their ends.
        counts: int64[n], how often each of them stands in the file.
        wordless: entries left out because no letter or digit is in them (blank ones, emoji).
    """

    path: Path
    questions: list[str]
    counts: np.ndarray
    wordless: int

    @property
    def repeated(self) -> int:
        """Entries that only repeat another one."""
        return int(self.counts.sum()) - len(self.questions)


def has_words(text: str) -> bool:
    """Whether a text has a letter or a digit. One without says nothing that can be compared."""
    return any(character.isalnum() for character in text)


def is_readable(text: str) -> bool:
    """Whether a text is whole: half of a surrogate pair (an emoji cut in two) has no encoding."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def read_questions(path: Path) -> Corpus:
    """Read a file line by line; its distinct questions are all that is held in memory.

    CSV and TSV need a header that names a column `question`, `query`, `问题`, `sentence` or `text`
    (the first of these that is there: the `text` beside a `question` is often its answer), or
    `query1` and `query2` (both are read); a single column of another name is a plain list. A line
    of JSONL is a string or an object with such keys. UTF-8, UTF-16 with BOM, or GB18030.

    Raises:
        UserError: the file cannot be read, mixes encodings, or holds no question.
    """
    counts: dict[str, int] = {}
    wordless = 0
    for entry in _entries(path):
        text = entry.strip()
        if has_words(text):
            counts[text] = counts.get(text, 0) + 1
        else:
            wordless += 1
    if not counts:
        state = "it is empty"
        if wordless:
            state = f"none of its {wordless} entries has a letter or digit"
        raise UserError(f"{path}: no question in this file ({state}). Give one question a line.")
    return Corpus(path, list(counts), np.fromiter(counts.values(), np.int64), wordless)


def _entries(path: Path) -> Iterator[str]:
    if path.suffix.lower() in _SEPARATORS:
        yield from _table_entries(path, _SEPARATORS[path.suffix.lower()])
        return
    with open_text(path) as file:
        if path.suffix.lower() in _JSON_LINES:
            yield from _json_entries(file, path)
        else:
            for line in file:
                yield from line.splitlines()


def _table_entries(path: Path, separator: str) -> Iterator[str]:
    rows = records(path, separator)
    _, header = next(rows, (1, []))
    names = [unicodedata.normalize("NFKC", name).strip().lower() for name in header]
    columns = [names.index(name) for name in _question_columns(names)]
    if not columns and len(header) == 1:  # a plain list that is called .csv
        columns = [0]
        yield header[0]
    if not columns and any(names):
        raise UserError(
            f"{path}, line 1: there is no column of questions (found: {', '.join(header)}). "
            "Name one of them 'question', or 'query1' and 'query2' in a table of pairs."
        )
    for line, fields in rows:
        if not any(field.strip() for field in fields):
            continue
        if len(fields) != len(header):
            raise UserError(
                f"{path}, line {line}: {len(fields)} fields where the header has "
                f'{len(header)}. Put a question that contains a separator in quotes ("...").'
            )
        yield from (fields[index] for index in columns)


def _question_columns(names: Collection[str]) -> Sequence[str]:
    """Those of `names` that hold questions: a pair of columns, else one, else none."""
    for pair in _PAIRS:
        if all(name in names for name in pair):
            return pair
    singles = [name for pair in _PAIRS for name in pair]
    return [name for name in (*_COLUMNS, *singles) if name in names][:1]


def _json_entries(file, path: Path) -> Iterator[str]:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            content = json.loads(line)
        except ValueError as error:
            raise UserError(f"{path}, line {number}: this is not JSON ({error}).") from error
        found = [content]
        if isinstance(content, dict):
            found = [content[name] for name in _question_columns(content)]
        if not found or not all(isinstance(text, str) and is_readable(text) for text in found):
            raise UserError(
                f"{path}, line {number}: no question here. Write a string, or an object with a "
                "string under 'question' (or 'query1' and 'query2')."
            )
        yield from found
