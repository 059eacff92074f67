"""Find the competition's files: in the data directory, on the mirror, else the sample."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from ..config import ROOT, DataConfig
from ..errors import UserError
from ..files import sha256
from .mirror import fetch_mirror

_ROLES = ("train", "dev", "test")
# The competition's own names end in a date; browsers add " (1)" to a repeated download.
_FILE_NAME = re.compile(r"(train|dev|test)(\.example)?(_20200228)?( ?\(\d+\))?\.csv")
SAMPLE = ROOT / "data" / "sample"


@dataclass(frozen=True)
class Sources:
    """The files of a run. `is_sample` when they are the repository's own sample."""

    train: Path
    dev: Path | None
    test: Path | None
    external: Path | None
    is_sample: bool

    @property
    def roles(self) -> list[tuple[str, Path]]:
        """The files that exist with their roles, in a fixed order."""
        names = ("train", "dev", "test", "external")
        return [(name, getattr(self, name)) for name in names if getattr(self, name)]


def find_sources(config: DataConfig) -> Sources:
    """The files in `data.dir`; else, if it may, from the mirror; else the sample, loudly.

    Raises:
        UserError: a directory that was asked for explicitly holds no train file, or holds two
            different ones; `data.external` does not exist.
    """
    if config.external and not config.external.is_file():
        raise UserError(f"data.external={config.external}: there is no such file.")
    try:
        return _sources(config, config.dir, is_sample=False)
    except TrainFileMissing:
        # Somebody who names a directory wants that one, not a download or a toy in its place.
        if config.dir != DataConfig().dir:
            raise
    if config.mirror and fetch_mirror(config.dir, echo=_say):
        return _sources(config, config.dir, is_sample=False)
    _say(
        "\n"
        "  ! The competition files are not here. This run uses the SAMPLE in data/sample,\n"
        "  ! written for this project: its scores say nothing about the leaderboard.\n"
        f"  ! Put train.csv, dev.csv and test.csv into {config.dir}, or set DATA_DIR.\n"
    )
    return _sources(config, SAMPLE, is_sample=True)


def _sources(config: DataConfig, directory: Path, is_sample: bool) -> Sources:
    found = find_data(directory)
    return Sources(found["train"], found.get("dev"), found.get("test"), config.external, is_sample)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class TrainFileMissing(UserError):
    """The data directory has no training file, so another source may be tried."""


def find_data(directory: Path) -> dict[str, Path]:
    """The files of `directory` by role: "train", and "dev" and "test" where they exist.

    Recognised are train.csv, dev.csv, test.csv and the names under which the competition's
    files circulate, such as `train_20200228 (1).csv` and `test.example_20200228.csv`.

    Raises:
        TrainFileMissing: there is no training file, or no such directory.
        UserError: two files of one role differ, or a directory has the name of a file.
    """
    if directory.is_file():
        raise UserError(f"{directory}: this is a file. Name the directory that holds train.csv.")
    names = sorted(path.name for path in directory.iterdir()) if directory.is_dir() else []
    found: dict[str, Path] = {}
    for role in _ROLES:
        matches = [_FILE_NAME.fullmatch(name) for name in names]
        candidates = [directory / m[0] for m in matches if m and m[1] == role]
        for path in candidates:
            if path.is_dir():
                raise UserError(f"{path}: a directory stands in place of a file. Remove it.")
        # The plain name comes first, so that it is the one that messages and hashes mention.
        candidates.sort(key=lambda path: (path.name != f"{role}.csv", path.name))
        for other in candidates[1:]:
            if sha256(other) != sha256(candidates[0]):
                raise UserError(
                    f"{directory}: both '{candidates[0].name}' and '{other.name}' could be the "
                    f"{role} file, and they differ. Keep one of them."
                )
        if candidates:
            found[role] = candidates[0]
    if "train" not in found:
        tables = [f"'{name}'" for name in names if name.endswith(".csv")]
        contents = f"its CSV files are {', '.join(tables[:5])}" if tables else "it has no CSV file"
        state = contents if directory.is_dir() else "it does not exist"
        raise TrainFileMissing(
            f"{directory}: no training file here ({state}). "
            "Put train.csv there, or name another directory with data.dir=."
        )
    return found
