"""Text files as people have them: find the encoding, read the records of a table.

charset-normalizer 3.5 was tried for the encoding and not taken: a UTF-8 table whose one row has a
damaged character it reads as Windows-1252, without a word. The files here are UTF-8, UTF-16 with a
byte order mark, or GB18030, so that the question is only which of these.
"""

import codecs
import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from ..errors import UserError


def open_text(path: Path) -> TextIO:
    """The file as text, its line ends as they are, without a byte order mark.

    Raises:
        UserError: it cannot be read, is binary, or is in none of the encodings; names the line.
    """
    file = open(path, encoding=find_encoding(path), newline="")
    if file.read(1) != "\ufeff":
        file.seek(0)
    return file


def records(path: Path, separator: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Each record of a table with the number of the line on which it starts; no blank lines.

    Raises:
        UserError: as for `open_text`, or quotes that are not closed.
    """
    with open_text(path) as file:
        # strict=True: a quote that is never closed is an error and does not swallow the file's
        # rest.
        reader = csv.reader(file, delimiter=separator, strict=True)
        while True:
            line = reader.line_num + 1
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise UserError(
                    f"{path}, line {line}: the row that starts here has broken quotes ({error}). "
                    'A question in double quotes must end with one, and "" stands for one inside.'
                ) from error
            if len(fields) > 1 or any(field.strip() for field in fields):
                yield line, fields


def find_encoding(path: Path) -> str:
    """ "utf-8-sig", "utf-16" or "gb18030", after one pass over the lines.

    GB18030 gives a meaning to nearly any bytes, so that a UTF-8 file with one damaged character
    could pass for it and come out as nonsense: it is assumed only where three-byte UTF-8
    characters (all Chinese ones are) do not cover most bytes beyond ASCII.

    Raises:
        UserError: see `open_text`.
    """
    if path.is_dir():
        raise UserError(f"{path}: this is a directory. Name the file itself.")
    is_utf8, beyond_ascii, chinese = True, 0, 0
    try:
        with open(path, "rb") as file:
            if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                return _checked(path, "utf-16")
            file.seek(0)
            for number, line in enumerate(file, start=1):
                if b"\0" in line:
                    raise _binary(path, number)
                if line.isascii():
                    continue
                text = line.decode("utf-8", "ignore")
                is_utf8 = is_utf8 and text.encode() == line
                beyond_ascii += len(line.translate(None, bytes(range(128))))
                chinese += sum(character >= "\u0800" for character in text)
    except FileNotFoundError as error:
        raise UserError(f"{path}: there is no such file. Check its name and folder.") from error
    except OSError as error:
        raise UserError(f"{path}: the file cannot be read ({error.strerror}).") from error
    if is_utf8:
        return "utf-8-sig"
    return _checked(path, "utf-8" if 2 * 3 * chinese > beyond_ascii else "gb18030")


def _checked(path: Path, encoding: str) -> str:
    """The encoding, if the whole file is in it."""
    try:
        with open(path, encoding=encoding, newline="") as file:
            for number, line in enumerate(file, start=1):
                if "\0" in line:
                    raise _binary(path, number)
    except UnicodeDecodeError:
        raw = path.read_bytes()
        try:
            raw.decode(encoding)
        except UnicodeDecodeError as error:
            before = raw[: error.start].decode(encoding, "replace")
            place = len(re.split("\r\n|\r|\n", before))
            raise UserError(
                f"{path}, line {place}: the text cannot be decoded (byte {error.start + 1} is not "
                f"{encoding.upper()}; damaged, cut short, or a mixture). Save the file as UTF-8."
            ) from error
    return encoding


def _binary(path: Path, line: int) -> UserError:
    return UserError(
        f"{path}, line {line}: this is a binary file (it contains NUL bytes). "
        "A spreadsheet must be saved as 'CSV UTF-8' first."
    )
