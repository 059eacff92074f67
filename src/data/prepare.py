"""Find the competition files (or fall back to the sample) and write validated pair tables."""

import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ..config import DataConfig
from ..errors import UserError
from ..files import sha256, write_json
from .graph import audit, new_question_rows
from .mirror import fetch_mirror
from .pairs import TrainFileMissing, find_data, read_pairs, write_pairs

SAMPLE = Path(__file__).parents[2] / "data" / "sample"


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


def prepare(sources: Sources, use_dev: str, folder: Path) -> None:
    """Write train.csv, dev.csv, test.csv (as far as there are such files) and data.json.

    With `use_dev` = "train" the dev rows are appended to train.csv (ids prefixed "dev-") and
    there is no dev.csv. data.json holds hashes, counts and the leak audit of train → dev.
    """
    train = read_pairs(sources.train, labelled=True)
    facts: dict[str, object] = {"is_sample": sources.is_sample, "audit": None}
    tables = {"train": train}
    frame = train.frame
    if sources.dev:
        dev = tables["dev"] = read_pairs(sources.dev, labelled=True)
        if use_dev == "train":
            renamed = dev.frame.assign(id="dev-" + dev.frame["id"])
            frame = pd.concat([frame, renamed], ignore_index=True)
        else:
            facts["audit"] = audit(frame, dev.frame).as_dict()
            new = new_question_rows(frame, dev.frame)
            write_pairs(dev.frame, folder / "dev.csv")
            facts["dev_rows_with_new_questions"] = new.tolist()
    elif use_dev == "train":
        raise UserError("data.use_dev=train, but there is no dev file beside the train file.")
    write_pairs(frame, folder / "train.csv")
    if sources.test:
        tables["test"] = read_pairs(sources.test, labelled=False)
        write_pairs(tables["test"].frame, folder / "test.csv")
    if sources.external:
        tables["external"] = read_pairs(sources.external, labelled=True)
        write_pairs(tables["external"].frame, folder / "external.csv")
    facts["files"] = {
        role: {
            "sha256": sha256(table.path),
            "pairs": len(table.frame),
            "unlabelled_dropped": table.unlabelled_dropped,
        }
        for role, table in tables.items()
    }
    write_json(folder / "data.json", facts)
