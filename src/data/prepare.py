"""Write the validated pair tables of a run."""

from pathlib import Path

import pandas as pd

from ..errors import UserError
from ..files import sha256, write_json
from .graph import audit, new_question_rows
from .pairs import read_pairs, write_pairs
from .sources import Sources


def write_tables(sources: Sources, use_dev: str, folder: Path) -> None:
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
