"""Download of the competition's training and dev file from public mirrors."""

import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pooch

from ..files import atomic_path, sha256

# Folder `data` of the public repository zzy99/epidemic-sentence-pair, branch master.
MIRRORS = (
    "https://raw.githubusercontent.com/zzy99/epidemic-sentence-pair/master/data",
    "https://cdn.jsdelivr.net/gh/zzy99/epidemic-sentence-pair@master/data",
)


class MirrorFile(NamedTuple):
    """A file on every mirror, and the SHA-256 of its whole content in hex."""

    name: str
    sha256: str


# dev before train: a directory counts as filled once it has train.csv, so that comes last.
FILES = {
    "dev.csv": MirrorFile(
        "dev_20200228.csv",
        "7f1ab3464e8064bd1c5fcf80f1831995f49dbd3ee828d11529eedbd7d02df69a",
    ),
    "train.csv": MirrorFile(
        "train_20200228 (1).csv",
        "e4ca6ae2d483ac5fc54f4048dbfb55e10ae14773bdb449d541b06eda4e60311d",
    ),
}


def fetch_mirror(
    target: Path,
    mirrors: Sequence[str] = MIRRORS,
    connect_timeout: float = 5.0,
    echo: Callable[[str], object] = print,
    *,
    read_timeout: float = 20.0,
    files: Mapping[str, MirrorFile] = FILES,
) -> bool:
    """Download `files` (name in `target` → file on the mirrors) into `target`.

    The mirrors are base addresses, asked in order; each address is echoed before it is asked. A
    file counts only when its SHA-256 is right. Nothing is written into `target` before all files
    are there, and a different file of the same name is never overwritten.

    Args:
        connect_timeout: seconds to wait for a connection.
        read_timeout: seconds to wait for the next bytes of an answer.

    Returns:
        True when all files are in `target`, whole. False otherwise; the reasons were echoed.
    """
    missing = dict(files)
    for name, file in files.items():
        if (target / name).exists():
            if not (target / name).is_file() or sha256(target / name) != file.sha256:
                echo(f"{target / name} is not the competition's file; nothing is downloaded.")
                return False
            del missing[name]

    # pooch announces its temporary file names at level INFO; here the addresses are enough.
    pooch.get_logger().setLevel(logging.WARNING)
    downloader = pooch.HTTPDownloader(progressbar=True, timeout=(connect_timeout, read_timeout))
    with tempfile.TemporaryDirectory() as staging:
        waiting = dict(missing)
        for mirror in mirrors:
            for name, file in list(waiting.items()):
                url = f"{mirror}/{quote(file.name)}"
                echo(f"Asking {url}")
                try:
                    pooch.retrieve(
                        url, file.sha256, fname=name, path=staging, downloader=downloader
                    )
                except (OSError, ValueError) as error:
                    # OSError: everything that requests raises. ValueError: pooch, wrong hash.
                    echo(f"  failed: {error}")
                    break  # the next mirror; a dead one costs a single timeout
                del waiting[name]
        if waiting:
            return False
        for name in missing:
            with atomic_path(target / name) as temporary:
                shutil.copyfile(Path(staging) / name, temporary)
    return True
