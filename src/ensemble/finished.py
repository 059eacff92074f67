"""What a finished run has decided, read back from its work folder."""

from pathlib import Path

import numpy as np

from ..errors import UserError
from ..files import read_json, sha256
from ..layout import Layout
from .combine import Decision


def finished_run(work: Path, results: Path) -> tuple[Layout, Decision]:
    """Members, folds, weights and threshold of the ensemble that was tuned in `work`.

    They are the run's own, whatever the settings say today, and the predictions that they were
    tuned on are the ones that are there: nothing was trained again since, alone or by other
    settings.

    Raises:
        UserError: the run is not finished, or was changed after it was tuned.
    """
    marker = work / "tune" / "done.json"
    if not marker.is_file():
        raise UserError(f"{work} holds no finished run. Run the pipeline there to its end first.")
    decision = Decision.read(work / "tune" / "decision.json")
    folds_file = work / "split" / "folds.npy"
    changed = not folds_file.is_file()
    if not changed:
        folds = int(np.load(folds_file, allow_pickle=False).max()) + 1
        layout = Layout(work, results, tuple(decision.weights), decision.bi_encoders, folds)
        read = [layout.table_file("train"), folds_file]
        read += layout.logits_files("oof", "oof-candidates")
        tuned_on = [name_and_hash[-1] for name_and_hash in read_json(marker)["inputs"]]
        changed = not all(file.is_file() and sha256(file) in tuned_on for file in read)
    if changed:
        raise UserError(
            f"{work} was changed after its weights were tuned: other data, other folds, or trained "
            "again. Run the pipeline there to its end first; it makes what no longer fits."
        )
    return layout, decision
