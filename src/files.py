"""Files that are either whole or absent: write to a temporary name, then rename."""

import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any


@contextmanager
def atomic_path(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside `target`; on success it is flushed and renamed to `target`.

    When the block raises (a full disk, Ctrl-C), the temporary file is removed and `target`
    keeps its previous content. After `kill -9` the temporary name stays behind, never a torn
    `target`; the next write of the same file replaces it.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    # The suffix is kept because some writers (numpy, matplotlib) choose the format by it.
    temporary = target.with_name(f".{target.stem}.partial{target.suffix}")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def save_tensors(
    tensors: dict[str, Any], path: Path, metadata: dict[str, str] | None = None
) -> None:
    """Write torch tensors as safetensors.

    Raises:
        OSError: it cannot be written. (The library, written in Rust, raises an error of its own.)
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file(tensors, path, metadata={"format": "pt"} | (metadata or {}))
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        raise OSError(int(number[1]) if number else errno.EIO, str(error), str(path)) from error


def save_array(target: Path, values: Any) -> None:
    """Write a numpy array as .npy, atomically."""
    import numpy as np

    with atomic_path(target) as temporary:
        np.save(temporary, values)


def write_text(target: Path, text: str) -> None:
    """Write `text` as UTF-8, atomically."""
    with atomic_path(target) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


def write_json(target: Path, content: Any) -> None:
    """Write `content` as indented UTF-8 JSON with a final newline, atomically."""
    write_text(target, json.dumps(content, ensure_ascii=False, indent=2) + "\n")


def read_json(path: Path) -> Any:
    """Read a JSON file written by `write_json`."""
    return json.loads(path.read_text(encoding="utf-8"))


def sha256(path: Path) -> str:
    """Hex SHA-256 of a file's bytes; read once while its size and time stay the same."""
    status = path.stat()
    return _sha256(path, status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=1024)
def _sha256(path: Path, inode: int, size: int, modified: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_in(name: str) -> list[Path]:
    """The files of a local directory, sorted; none where `name` is no directory (a hub's name)."""
    folder = Path(name)
    return sorted(p for p in folder.iterdir() if p.is_file()) if folder.is_dir() else []
