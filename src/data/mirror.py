"""Download of the competition's training and dev file from public mirrors."""

import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import pooch

from ..files import atomic_path, sha256

# Folder `data` of the public repository zzy99/epidemic-sentence-pair, branch master.
MIRRORS = (
    "https://raw.githubusercontent.com/zzy99/epidemic-sentence-pair/master/data",
    "https://cdn.jsdelivr.net/gh/zzy99/epidemic-sentence-pair@master/data",
)


# Name in the data directory → name on the mirrors, SHA-256 of the content. dev before train: a
# directory counts as filled once it has train.csv, so that comes last.
FILES = {
    "dev.csv": (
        "dev_20200228.csv",
        "7f1ab3464e8064bd1c5fcf80f1831995f49dbd3ee828d11529eedbd7d02df69a",
    ),
    "train.csv": (
        "train_20200228 (1).csv",
        "e4ca6ae2d483ac5fc54f4048dbfb55e10ae14773bdb449d541b06eda4e60311d",
    ),
}


def fetch_mirror(
    target: Path,
    mirrors: Sequence[str] = MIRRORS,
    echo: Callable[[str], object] = print,
    *,
    timeout: tuple[float, float] = (5.0, 20.0),
    files: Mapping[str, tuple[str, str]] = FILES,
) -> bool:
    """Download `files` into `target`.

    The mirrors are base addresses, asked in order; each address is echoed before it is asked. A
    file counts only when its SHA-256 is right. Nothing is written into `target` before all files
    are there, and a different file of the same name is never overwritten.

    Args:
        timeout: seconds to wait for a connection, and for the next bytes of an answer.

    Returns:
        Whether all files are in `target`, whole. If not, the reasons were echoed.
    """
    missing = {name: files[name] for name in files if not (target / name).exists()}
    for path in (target / name for name in files.keys() - missing):
        if not path.is_file() or sha256(path) != files[path.name][1]:
            echo(f"{path} is not the competition's file; nothing is downloaded.")
            return False
    # pooch announces its temporary file names at level INFO; here the addresses are enough.
    pooch.get_logger().setLevel(logging.WARNING)
    download = pooch.HTTPDownloader(progressbar=True, timeout=timeout)
    with tempfile.TemporaryDirectory() as folder:
        for mirror in mirrors if missing else ():
            try:
                for name, (remote, checksum) in missing.items():
                    url = f"{mirror}/{quote(remote)}"
                    if not Path(folder, name).exists():  # from the mirror before
                        echo(f"Asking {url}")
                    pooch.retrieve(url, checksum, name, folder, downloader=download)
                break
            except (OSError, ValueError) as error:
                # OSError: everything that requests raises. ValueError: pooch, wrong hash.
                echo(f"  failed: {error}")
        else:
            return not missing
        for name in missing:
            with atomic_path(target / name) as temporary:
                shutil.copyfile(Path(folder, name), temporary)
    return True
