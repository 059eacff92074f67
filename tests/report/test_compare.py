"""A paired comparison of two finished runs."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from src.data.pairs import write_pairs
from src.ensemble.combine import Decision
from src.errors import UserError
from src.files import sha256, write_json
from src.report.run_comparison import compare_runs


def finished_run(
    folder: Path, decided: list[int], labels: list[int], certainty: float = 2.0
) -> Path:
    """A work directory with what a comparison reads; every pair is a component of its own."""
    rows = range(len(labels))
    frame = pd.DataFrame(
        {
            "id": [str(row) for row in rows],
            "category": "",
            "query1": [f"问题{row}" for row in rows],
            "query2": [f"疑问{row}" for row in rows],
            "label": labels,
        }
    )
    write_pairs(frame, folder / "prepare" / "train.csv")
    (folder / "tune").mkdir()
    write_json(folder / "tune" / "decision.json", asdict(Decision({"m": 1.0}, threshold=0.5)))
    folds = np.arange(len(labels)) % 2
    (folder / "split").mkdir()
    np.save(folder / "split" / "folds.npy", folds)
    logits = 0.5 + certainty * (2 * np.array(decided) - 1)
    for fold in range(2):
        (folder / "train" / "m" / f"fold{fold}").mkdir(parents=True)
        np.save(folder / "train" / "m" / f"fold{fold}" / "oof.npy", logits[folds == fold])
    np.save(folder / "tune" / "cross_fitted.npy", np.array([decided, decided]))
    read = [folder / name for name in ("prepare/train.csv", "split/folds.npy")]
    read += [*sorted(folder.glob("train/m/*/oof.npy"))]
    tuned_on = [[file.name, sha256(file)] for file in read]
    write_json(folder / "tune" / "done.json", {"inputs": tuned_on})
    return folder


def test_difference_and_exact_p_value(tmp_path: Path):
    """a is right on 6 rows where b is wrong, b on none: p = 2 · ½⁶."""
    labels = [1, 0] * 10
    a = finished_run(tmp_path / "a", labels, labels)
    b = finished_run(tmp_path / "b", [1 - label for label in labels[:6]] + labels[6:], labels)
    result = compare_runs(a, b)
    assert (result.pairs, result.a, result.b) == (20, 1.0, 0.7)
    assert result.difference == pytest.approx(0.3)
    assert 0 < result.low < 0.3 < result.high < 0.6
    assert result.p_value == pytest.approx(2 * 0.5**6)
    assert compare_runs(b, a).difference == pytest.approx(-0.3)
    assert "+30.00 points" in str(result) and "p = 0.031" in str(result)


def test_the_loss_tells_apart_what_decides_alike(tmp_path: Path):
    labels = [1, 0] * 10
    decided = [1 - label for label in labels[:2]] + labels[2:]
    sure = finished_run(tmp_path / "sure", decided, labels, certainty=2.0)
    unsure = finished_run(tmp_path / "unsure", decided, labels, certainty=1.0)
    result = compare_runs(sure, unsure)
    assert result.difference == 0.0 and result.p_value == 1.0
    right, wrong = (np.logaddexp(0, -sign * np.array([2.0, 1.0])) for sign in (1, -1))
    expected = 0.9 * (right[0] - right[1]) + 0.1 * (wrong[0] - wrong[1])
    difference, low, high = result.loss
    assert difference == pytest.approx(expected) and low < difference < high
    assert f"log loss {expected:+.4f}" in str(result)


def test_runs_on_other_rows_or_unfinished_ones_are_refused(tmp_path: Path):
    a = finished_run(tmp_path / "a", [1, 0], [1, 0])
    b = finished_run(tmp_path / "b", [1, 1], [1, 1])
    with pytest.raises(UserError, match="different training rows"):
        compare_runs(a, b)
    with pytest.raises(UserError, match="holds no finished run"):
        compare_runs(a, tmp_path / "nothing")


def test_a_run_that_changed_after_it_was_tuned_is_refused(tmp_path: Path):
    """Its labels and its predictions would be of different networks."""
    a = finished_run(tmp_path / "a", [1, 0], [1, 0])
    trained_again = finished_run(tmp_path / "again", [1, 0], [1, 0])
    np.save(trained_again / "train" / "m" / "fold1" / "oof.npy", np.array([3.0]))
    half_way = finished_run(tmp_path / "half", [1, 0], [1, 0])
    (half_way / "train" / "m" / "fold0" / "oof.npy").unlink()
    other_rows = finished_run(tmp_path / "other", [1, 0], [1, 0])
    table = other_rows / "prepare" / "train.csv"
    table.write_text(table.read_text("utf-8").replace("问题0", "问题00"), "utf-8")
    gone = finished_run(tmp_path / "gone", [1, 0], [1, 0])
    (gone / "prepare" / "train.csv").unlink()
    for changed in (trained_again, half_way, other_rows, gone):
        with pytest.raises(UserError, match="was changed after its weights were tuned"):
            compare_runs(a, changed)
