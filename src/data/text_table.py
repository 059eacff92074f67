"""Text files as people have them: find the encoding, read lines and the records of a table.

charset-normalizer 3.5 was tried for the encoding and not taken. It reads two rows of GB18030 as
Thai, and one row of UTF-8 with a cut character as Windows-1252 (as GB18030 where it may choose
among the three encodings below only), without a word.
"""

import codecs
import csv
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ..errors import UserError

# Stands for bytes that are no character. (Who decodes gets a UnicodeDecodeError, which has an end.)
_DAMAGE = "\udcff"
_SEPARATORS = ",;\t"
# csv's own limit of 131,072 characters a field is reported as if quotes were broken.
csv.field_size_limit(2**31 - 1)
codecs.register_error("mark", lambda error: (_DAMAGE, error.end))  # type: ignore[attr-defined]


def _encoding(path: Path) -> str:
    """UTF-16 by its byte order mark, else "utf-8" or "gb18030", after one pass over the lines.

    GB18030 gives a meaning to nearly any bytes, so that a UTF-8 file with one damaged character
    could pass for it and come out as nonsense: it is assumed only where more bytes are damaged
    than belong to Chinese characters, which have three bytes each.
    """
    with _open(path, "rb") as binary:
        if binary.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16"
    damaged = chinese = 0
    with _open(path, "rt", encoding="utf-8", errors="mark") as file:
        for line in file:
            damaged += line.count(_DAMAGE)
            chinese += sum("\u3400" <= character <= "\u9fff" for character in line)
    return "gb18030" if damaged > 3 * chinese else "utf-8"


def _open(path: Path, mode: str, **options: str) -> IO:
    """The file, or what is in it where it is a .gz."""
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    return opener(path, mode, **options)


def lines(path: Path) -> Iterator[str]:
    """The lines of a text file with their ends as they are, without a byte order mark.

    Raises:
        UserError: it cannot be read, is binary, or is in no known encoding; names the line.
    """
    try:
        encoding = _encoding(path)
        with _open(path, "rt", encoding=encoding, errors="mark", newline="") as file:
            for number, line in enumerate(file, start=1):
                if "\0" in line:
                    raise UserError(
                        f"{path}, line {number}: this is a binary file (it contains NUL bytes). "
                        "A spreadsheet must be saved as 'CSV UTF-8' first."
                    )
                if _DAMAGE in line:
                    raise UserError(
                        f"{path}, line {number}: the text cannot be decoded (some of it is not "
                        f"{encoding.upper()}: damaged, cut short, or a mixture). Save it as UTF-8."
                    )
                yield line.removeprefix("\ufeff") if number == 1 else line
    except (OSError, EOFError, zlib.error) as error:  # the last two: half of a .gz
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise UserError(f"{path}: it cannot be read ({reason}). Check the name.") from error


def separator_of(path: Path) -> str:
    """Comma, semicolon or tab: what the header has most of, and a comma where it has none."""
    header = next(lines(path), "")
    return max(_SEPARATORS, key=header.count)


def records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Each record of a table with the number of the line on which it starts; no blank lines.

    All have as many fields as the first one, the header; see `separator_of`.

    Raises:
        UserError: as for `lines`; quotes that are not closed; more or fewer fields.
    """
    # strict=True: a quote that is never closed is an error and does not swallow the file's rest.
    reader = csv.reader(lines(path), delimiter=separator_of(path), strict=True)
    line, width = 1, 0
    try:
        for fields in reader:
            if not any(field.strip() for field in fields):
                fields = [""] * (width if len(fields) > 1 else 0)
            width = width or len(fields)
            if fields and len(fields) != width:
                raise UserError(
                    f"{path}, line {line}: {len(fields)} fields where the header has {width}. "
                    'Put a question that contains the separator in double quotes ("...").'
                )
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise UserError(
            f"{path}, line {line}: the row that starts here has broken quotes ({error}). "
            'A question in double quotes must end with one, and "" stands for one inside.'
        ) from error
