"""Write the validated pair tables of a run."""

from pathlib import Path

import pandas as pd

from ..errors import UserError
from ..files import sha256, write_json
from .audit import audit, new_question_rows
from .pairs import read_pairs, write_pairs
from .sources import Sources


def write_tables(sources: Sources, use_dev: str, folder: Path) -> None:
    """Write train.csv, dev.csv, test.csv (as far as there are such files) and data.json.

    With `use_dev` = "train" the dev rows are appended to train.csv (ids prefixed "dev-") and
    there is no dev.csv. data.json holds hashes, counts and the leak audit of train → dev.
    """
    tables = {role: read_pairs(path, labelled=role != "test") for role, path in sources.roles}
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
