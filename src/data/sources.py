"""Find the competition's files: in the data directory, on the mirror, else the sample."""

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import click

from ..config import ROOT, DataConfig
from ..errors import UserError
from ..files import sha256
from .mirror import fetch_mirror

Role = Literal["train", "dev", "test", "external"]

SAMPLE = ROOT / "data" / "sample"

_say = partial(click.echo, err=True)
# The competition's own names end in a date; browsers add " (1)" to a repeated download.
_FILE_NAME = re.compile(
    r"(train|dev|val|valid|validation|test)(\.example)?(_20200228)?( ?\(\d+\))?\.csv", re.IGNORECASE
)
_ROLES = {"val": "dev", "valid": "dev", "validation": "dev"}
_LIKE_DATA = {".csv", ".tsv", ".txt", ".xlsx", ".xls", ".json", ".jsonl", ".gz", ".zip"}
_NO_DATA = """
  ! The competition files are not here. This run uses the SAMPLE in data/sample,
  ! written for this project: its scores say nothing about the leaderboard.
  ! Put train.csv, dev.csv and test.csv into {}, or set DATA_DIR.
"""


class TrainFileMissing(UserError):
    """There is no training file, so another source may be tried."""


@dataclass(frozen=True)
class Sources:
    """The files of a run. `is_sample` when they are the repository's own sample."""

    train: Path
    dev: Path | None
    test: Path | None
    external: Path | None
    is_sample: bool

    @property
    def roles(self) -> list[tuple[Role, Path]]:
        """The files that exist with their roles, in a fixed order."""
        files: dict[Role, Path | None] = {"train": self.train, "dev": self.dev}
        files |= {"test": self.test, "external": self.external}
        return [(role, path) for role, path in files.items() if path]

    @property
    def read(self) -> str:
        """The files as they are named, and what they are taken for where the name is another."""
        return ", ".join(
            path.name
            if role == "external" or path.name.lower().startswith(role)
            else f"{path.name} as {role}"
            for role, path in self.roles
        )

    @property
    def not_read(self) -> list[str]:
        """Names of the other files beside them that look like data."""
        read = {path for _, path in self.roles}
        beside = (path for path in self.train.parent.iterdir() if path.suffix.lower() in _LIKE_DATA)
        return sorted(path.name for path in beside if path not in read)


def find_sources(config: DataConfig) -> Sources:
    """The files in `data.dir`; else, if it may, from the mirror; else the sample, loudly.

    Raises:
        UserError: a directory that was asked for explicitly holds no train file, or holds two
            different ones; `data.external` does not exist.
    """
    if config.external and not config.external.is_file():
        raise UserError(f"data.external={config.external}: there is no such file.")
    is_sample = False
    try:
        found = find_data(config.dir)
    except TrainFileMissing:
        # Somebody who names a directory wants that one, not a download or a toy in its place.
        if config.dir != DataConfig().dir:
            raise
        is_sample = not (config.mirror and fetch_mirror(config.dir, echo=_say))
        if is_sample:
            _say(_NO_DATA.format(config.dir))
        found = find_data(SAMPLE if is_sample else config.dir)
    return Sources(found["train"], found.get("dev"), found.get("test"), config.external, is_sample)


def find_data(directory: Path) -> dict[str, Path]:
    """The files of `directory` by role: "train", and "dev" and "test" where they exist.

    Recognised are train.csv, dev.csv, test.csv and the names under which the competition's
    files circulate, such as `train_20200228 (1).csv` and `test.example_20200228.csv`, in upper or
    lower case; val, valid and validation are dev.

    Raises:
        TrainFileMissing: there is no training file, or no such directory.
        UserError: two files of one role differ, or a directory has the name of a file.
    """
    if directory.is_file():
        raise UserError(f"{directory}: this is a file. Name the directory that holds train.csv.")
    found: dict[str, Path] = {}
    # The plain name, the shortest, comes first: it is the one that messages and hashes mention.
    inside = directory.iterdir() if directory.is_dir() else ()
    tables = sorted(
        (path for path in inside if path.suffix.lower() == ".csv"),
        key=lambda path: (len(path.name), path.name),
    )
    for path in tables:
        if not (match := _FILE_NAME.fullmatch(path.name)):
            continue
        if path.is_dir():
            raise UserError(f"{path}: a directory stands in place of a file. Remove it.")
        role = match[1].lower()
        role = _ROLES.get(role, role)
        first = found.setdefault(role, path)
        if sha256(path) != sha256(first):
            raise UserError(
                f"{directory}: both '{first.name}' and '{path.name}' could be the {role} "
                "file, and they differ. Keep one of them."
            )
    if "train" not in found:
        state = "it has no CSV file" if directory.is_dir() else "it does not exist"
        if tables:
            state = "its CSV files are " + ", ".join(f"'{path.name}'" for path in tables[:5])
        raise TrainFileMissing(
            f"{directory}: no training file here ({state}). "
            "Put train.csv there, or name another directory with data.dir=."
        )
    return found
