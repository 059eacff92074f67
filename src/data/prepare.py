"""Write the validated pair tables of a run."""

import sys
from pathlib import Path

import pandas as pd

from ..errors import UserError
from ..files import sha256, write_json
from .audit import audit, both_labels, new_question_rows
from .pairs import PairTable, read_pairs, write_pairs
from .sources import Sources

_MOST_NOTHING = 0.01  # of the rows of a labelled file


def write_tables(sources: Sources, use_dev: str, folder: Path) -> None:
    """Write train.csv, dev.csv, test.csv (as far as there are such files) and data.json.

    With `use_dev` = "train" the dev rows are appended to train.csv (ids prefixed "dev-") and
    there is no dev.csv. data.json holds hashes, counts, the leak audit of train → dev, and train's
    pairs with both labels.

    Raises:
        UserError: a file cannot be read, has too many questions that are none, or train has but
            one label.
    """
    tables = {role: read_pairs(path, labelled=role != "test") for role, path in sources.roles}
    for role, table in tables.items():
        report_nothing(table, labelled=role != "test")
    frames = {role: table.frame for role, table in tables.items()}
    facts: dict[str, object] = {"is_sample": sources.is_sample, "audit": None}
    if use_dev == "train":
        if "dev" not in frames:
            raise UserError("data.use_dev=train, but there is no dev file beside the train file.")
        dev = frames.pop("dev")
        joined = [frames["train"], dev.assign(id="dev-" + dev["id"])]
        frames["train"] = pd.concat(joined, ignore_index=True)
    elif "dev" in frames:
        new = new_question_rows(frames["train"], frames["dev"])
        facts["audit"] = audit(frames["train"], frames["dev"]).as_dict()
        facts["dev_rows_with_new_questions"] = new.tolist()
    if frames["train"]["label"].nunique() == 1:
        raise UserError(
            f"{tables['train'].path}: all {len(frames['train']):,} labels are "
            f"{frames['train']['label'][0]}. Training needs pairs of both kinds: is the label in "
            "another column?"
        )
    facts["both_labels"] = both_labels(frames["train"])
    for role, frame in frames.items():
        write_pairs(frame, folder / f"{role}.csv")
    facts["files"] = {
        role: {
            "sha256": sha256(table.path),
            "pairs": len(table.frame),
            "unlabelled_dropped": table.unlabelled_dropped,
        }
        for role, table in tables.items()
    }
    write_json(folder / "data.json", facts)


def report_nothing(table: PairTable, labelled: bool) -> None:
    """Say on which lines a question is none ("nan", "-", blank), and what becomes of them.

    Raises:
        UserError: they are more than one in a hundred rows of a labelled file.
    """
    if not table.nothing:
        return
    named = ", ".join(map(str, table.nothing[:20])) + (", …" if len(table.nothing) > 20 else "")
    found = (
        f"{table.path}: on {len(table.nothing)} line(s) a question is blank or a word for nothing, "
        f"such as nan or '-' (line {named})."
    )
    rows = len(table.frame) + table.unlabelled_dropped
    if labelled and len(table.nothing) > _MOST_NOTHING * rows:
        raise UserError(
            f"{found} That is {len(table.nothing) / rows:.0%} of the file: fill in the questions, "
            "or remove these rows."
        )
    remedy = "They are read as they stand." if labelled else "They are decided as different."
    print(f"  ! {found} {remedy}", file=sys.stderr, flush=True)
