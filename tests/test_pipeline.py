"""Whole runs of the tiny profile: what is made again, what is never seen, what survives a kill."""

import json
import multiprocessing
import os
import resource
import shutil
import signal
import threading
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tiny_run import ROOT, command, cut_sample, settings

from src.__main__ import entry
from src.config import load_config
from src.data.graph import pair_key, wording
from src.data.pairs import read_pairs, write_pairs
from src.errors import UserError
from src.files import read_json, write_json
from src.pipeline import STAGES, Pipeline, submit
from src.step import exclusive
from src.training import fold_model

MEMBERS = ("siamese-fgm", "cross-pgd")
MODELS = [f"{member} fold {fold}" for member in MEMBERS for fold in range(2)]
STEPS = [
    "prepare",
    "split",
    *(f"training-part fold {fold}" for fold in range(2)),
    *(f"train {model}" for model in MODELS),
    *(
        f"predict {what} by {model}"
        for model in MODELS
        for what in ("dev", "test", "candidates of oof", "candidates of dev", "candidates of test")
        if model.startswith("siamese") or not what.startswith("candidates")
    ),
    "tune",
    "submit",
    "report",
]
# Enough for an ensemble that does not give every pair the same answer.
LEARNS = ("members.siamese-fgm.training.epochs=8", "members.cross-pgd.training.epochs=1")
PARTS, TRAINING, PREDICTION = set(STEPS[2:4]), set(STEPS[4:8]), set(STEPS[8:22])
LAST = set(STEPS[22:])


def predictions(*words: str) -> set[str]:
    """The steps of predict whose names have one of the words."""
    return {step for step in PREDICTION if any(word in step for word in words)}


class Run:
    """A folder with the data directory and everything that a run makes of it."""

    def __init__(self, folder: Path, pretrained: Path) -> None:
        self.folder, self.pretrained = folder, pretrained
        self.data, self.work = folder / "data", folder / "work" / "tiny"
        self.submission = folder / "submissions" / "submission.csv"

    def pipeline(self, *overrides: str) -> Pipeline:
        return Pipeline(load_config("tiny", [*settings(self.folder, self.pretrained), *overrides]))

    def make(self, *overrides: str) -> set[str]:
        """Run all stages; the names of the steps that had to be made."""
        pipeline = self.pipeline(*overrides)
        return {step.name for stage in STAGES for step in stage(pipeline) if step.run()}

    def table(self, role: str) -> pd.DataFrame:
        return read_pairs(self.data / f"{role}.csv", labelled=role != "test").frame

    @property
    def decision(self) -> bytes:
        return (self.work / "tune" / "decision.json").read_bytes()

    @property
    def metrics(self) -> dict:
        return read_json(self.folder / "submissions" / "tiny" / "metrics.json")


@pytest.fixture(scope="module")
def finished(tmp_path_factory, sample: Path, pretrained: Path) -> tuple[Run, Path]:
    """A finished run, and a copy of its folder."""
    run = Run(tmp_path_factory.mktemp("finished") / "run", pretrained)
    cut_sample(sample, run.data)
    assert run.make() == set(STEPS)
    copy = run.folder.with_name("copy")
    shutil.copytree(run.folder, copy)
    return run, copy


@pytest.fixture
def run(finished: tuple[Run, Path]) -> Run:
    """The finished run in its original state."""
    run, copy = finished
    shutil.rmtree(run.folder)
    shutil.copytree(copy, run.folder)
    return run


@pytest.fixture
def fresh(tmp_path: Path, sample: Path, pretrained: Path) -> Run:
    """A run of which nothing but the data is there."""
    run = Run(tmp_path, pretrained)
    cut_sample(sample, run.data)
    return run


# What is made again.


def test_nothing_is_made_twice(run: Run) -> None:
    assert run.make() == set()


def test_more_trials_tune_again(run: Run) -> None:
    made = run.make("tune.trials=12")
    # The test file's labels are decided again only if the decision is another one.
    assert {"tune", "report"} <= made <= LAST


def test_augmentation_trains_again(run: Run) -> None:
    assert run.make("augment.closure=0.5") == PARTS | TRAINING | PREDICTION | LAST


def test_one_members_setting_trains_that_member_again(run: Run) -> None:
    untouched = run.work / "train" / "siamese-fgm" / "fold0" / "done.json"
    before = untouched.stat().st_mtime_ns
    made = run.make("members.cross-pgd.training.epochs=2")
    trained = {"train cross-pgd fold 0", "train cross-pgd fold 1"}
    assert made == trained | predictions("cross-pgd") | LAST
    assert untouched.stat().st_mtime_ns == before


def test_another_test_file_trains_nothing_on_other_data(run: Run) -> None:
    write_pairs(run.table("test").iloc[::-1], run.data / "test.csv")
    run.make()
    ids = [line.split(",")[0] for line in run.submission.read_text().splitlines()[1:]]
    assert ids == run.table("test")["id"].tolist()


def test_a_lost_prediction_is_made_again_and_is_the_same(run: Run) -> None:
    lost = run.pipeline().layout.logits_file("siamese-fgm", 1, "oof")
    before, submission = np.load(lost), run.submission.read_bytes()
    lost.unlink()
    assert run.make() == {"train siamese-fgm fold 1", "report"}
    assert (np.load(lost) == before).all()
    assert run.submission.read_bytes() == submission


def test_what_other_settings_have_left_costs_this_run_nothing(run: Run) -> None:
    trained = run.metrics["seconds"]["train"]
    for left in ("train/siamese-fgm/fold9", "train/gone/fold0", "search"):
        write_json(run.work / left / "done.json", {"seconds": 1000.0, "peak_memory_gb": 999.0})
    assert "report" in run.make("tune.trials=12")
    assert run.metrics["seconds"]["train"] == trained > 0
    assert 0 < run.metrics["peak_memory_gb"] < 999


# New files beside finished weights.


@pytest.mark.usefixtures("one_attempt")
def test_a_test_file_that_comes_later_is_predicted_without_training(
    fresh: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    test, dev = fresh.table("test"), fresh.table("dev")
    for role in ("test", "dev"):
        (fresh.data / f"{role}.csv").unlink()
    trainings = []
    train = fold_model.train
    monkeypatch.setattr(
        fold_model, "train", lambda *arguments: trainings.append(1) or train(*arguments)
    )
    fresh.make()
    assert len(trainings) == 4 and not fresh.submission.exists()

    write_pairs(test, fresh.data / "test.csv")
    assert fresh.make() == {"prepare", "submit", "report"} | predictions("test")
    first = fresh.submission.read_bytes()
    write_pairs(test.iloc[::-2], fresh.data / "test.csv")
    assert fresh.make() == {"prepare", "submit", "report"} | predictions("test")
    assert len(fresh.submission.read_text().splitlines()) == 1 + len(test.iloc[::-2])
    write_pairs(test, fresh.data / "test.csv")
    fresh.make()
    assert fresh.submission.read_bytes() == first

    write_pairs(dev, fresh.data / "dev.csv")
    assert fresh.make() == {"prepare", "report"} | predictions("dev")
    assert 0 < fresh.metrics["ensemble"]["dev_accuracy"] < 1
    # Of a dev file that shares pairs with what was trained on, the others are scored.
    known = fresh.table("train").iloc[:5].assign(id=[f"known-{row}" for row in range(5)])
    write_pairs(pd.concat([dev, known], ignore_index=True), fresh.data / "dev.csv")
    before = fresh.metrics["ensemble"]["dev_accuracy"]
    assert fresh.make() == {"prepare", "report"} | predictions("dev")
    assert fresh.metrics["dev_pairs_left_out"] == 5
    assert fresh.metrics["ensemble"]["dev_accuracy"] == before
    assert len(trainings) == 4


def test_weights_of_other_settings_come_back(run: Run) -> None:
    before = run.submission.read_bytes()
    changed = "members.cross-pgd.training.head_lr=3e-3"
    run.make(changed)
    aside = run.work / "superseded" / "train" / "cross-pgd" / "fold0"
    assert (aside / "model.safetensors").is_file()
    assert read_json(aside / "done.json")["settings"]["member"]["training"]["head_lr"] == 2e-3
    assert not run.make() & TRAINING
    assert run.submission.read_bytes() == before


def test_what_will_be_made_again_is_said_before(run: Run, capsys: pytest.CaptureFixture) -> None:
    run.pipeline("members.cross-pgd.training.epochs=2").run()
    said = capsys.readouterr().err
    lines = [line for line in said.splitlines() if line.startswith("──")]
    assert lines[0].startswith("── something has changed")
    assert "train cross-pgd fold 0: settings member.training.epochs: 1 → 2" in lines[1]
    plan = lines[: lines.index("── train cross-pgd fold 0")]
    assert any("tune: follows from train cross-pgd fold 0" in line for line in plan)
    assert not any("siamese" in line for line in plan)
    capsys.readouterr()
    run.pipeline("members.cross-pgd.training.epochs=2").run()
    assert "made again" not in capsys.readouterr().err


def test_a_replaced_submission_is_put_back(run: Run) -> None:
    before = run.submission.read_bytes()
    run.submission.write_text("id,label\n")
    assert "submit" in run.make()
    assert run.submission.read_bytes() == before


def test_one_fold_model_is_trained_alone(fresh: Run) -> None:
    fresh.pipeline().train_some("cross-pgd", 1)
    assert [p.parent for p in fresh.work.glob("train/*/*/done.json")] == [
        fresh.work / "train" / "cross-pgd" / "fold1"
    ]
    assert not fresh.submission.exists()


def test_the_member_that_another_starts_from_is_trained_first(fresh: Run) -> None:
    fresh.pipeline("members.cross-pgd.start=siamese-fgm").train_some("cross-pgd", 1)
    trained = sorted(
        str(p.parent.relative_to(fresh.work)) for p in fresh.work.rglob("model.safetensors")
    )
    assert trained == ["train/cross-pgd/fold1", "train/siamese-fgm/fold1"]


def test_a_member_follows_the_one_it_starts_from(run: Run) -> None:
    start = "members.cross-pgd.start=siamese-fgm"
    cross = {f"train cross-pgd fold {fold}" for fold in range(2)}
    siamese = {f"train siamese-fgm fold {fold}" for fold in range(2)}
    assert cross == run.make(start) & TRAINING
    assert cross | siamese == run.make(start, "members.siamese-fgm.seed=7") & TRAINING


@pytest.mark.parametrize("member, fold", [("cross", 0), ("cross-pgd", 2), (None, -1)])
def test_there_is_no_such_fold_model(fresh: Run, member: str | None, fold: int) -> None:
    with pytest.raises(UserError, match="There is no .*(siamese-fgm, cross-pgd|0 to 1)"):
        fresh.pipeline().train_some(member, fold)


# What is never seen.


def wordings(frame: pd.DataFrame) -> set[str]:
    return {wording(text) for text in [*frame["query1"], *frame["query2"]]}


def spelled_pairs(frame: pd.DataFrame, key: Callable[[str], str]) -> set[frozenset[str]]:
    queries = zip(frame["query1"], frame["query2"], strict=True)
    return {frozenset(map(key, pair)) for pair in queries}


def test_a_training_part_knows_nothing_of_what_is_scored(fresh: Run, sample: Path) -> None:
    cut_sample(sample, fresh.data, train=600, other=100)
    train, dev = fresh.table("train"), fresh.table("dev")
    # dev: besides its own pairs one of train, one reversed, one in another spelling.
    known = train.iloc[[10, 200, 400]].assign(id=["x", "y", "z"])
    known.loc[200, ["query1", "query2"]] = train.loc[200, ["query2", "query1"]].to_list()
    known.loc[400, "query1"] = f"{train.loc[400, 'query1']}？！"
    dev = pd.concat([dev, known], ignore_index=True)
    write_pairs(dev, fresh.data / "dev.csv")
    # external: pairs of train and dev, and others.
    foreign = read_pairs(sample / "train.csv", labelled=True).frame.iloc[900:]
    external = pd.concat([train.iloc[::20], dev.iloc[::10], foreign], ignore_index=True)
    external = external.assign(id=[str(row) for row in range(len(external))])
    write_pairs(external, fresh.folder / "external.csv")

    pipeline = fresh.pipeline(
        "augment.closure=1", "augment.entity=1", f"data.external={fresh.folder / 'external.csv'}"
    )
    pipeline.run("training-part")

    folds = pipeline.layout.fold_numbers()
    test = fresh.table("test")
    for fold in range(2):
        part = pd.read_csv(
            pipeline.layout.training_part_file(fold), dtype=str, keep_default_na=False
        )
        assert set(part["source"]) == {"original", "closure", "entity", "external"}
        own = wordings(train[folds == fold])
        assert own and not wordings(part) & own
        for held_out in (dev, test):
            assert not spelled_pairs(part, wording) & spelled_pairs(held_out, wording)
            # Questions that train shares with dev were there before; no further one comes in.
            new = wordings(part) - wordings(part[part["source"] == "original"])
            assert new and not new & wordings(held_out)
            foreign_part = part[part["source"] == "external"]
            assert not wordings(foreign_part) & wordings(held_out)
        # Nothing else is lost.
        original = part[part["source"] == "original"]
        rest = train[(folds != fold) & ~train["id"].isin(train.loc[[10, 200, 400], "id"])]
        free = [
            frozenset(map(wording, pair_key(*queries)))
            not in spelled_pairs(dev, wording) | spelled_pairs(test, wording)
            for queries in zip(rest["query1"], rest["query2"], strict=True)
        ]
        assert original["id"].tolist() == rest["id"][free].tolist()


def test_devs_labels_decide_nothing(run: Run) -> None:
    before = run.decision, run.submission.read_bytes(), run.metrics["ensemble"]["dev_accuracy"]
    dev = run.table("dev")
    write_pairs(dev.assign(label=1 - dev["label"]), run.data / "dev.csv")
    assert "prepare" in run.make()
    assert (run.decision, run.submission.read_bytes()) == before[:2]
    assert run.metrics["ensemble"]["dev_accuracy"] == pytest.approx(1 - before[2])


# Which files there are.


def test_without_dev_and_test_there_is_a_score_but_no_submission(fresh: Run) -> None:
    (fresh.data / "dev.csv").unlink()
    (fresh.data / "test.csv").unlink()
    assert "submit" not in fresh.make()
    assert not fresh.submission.exists()
    ensemble = fresh.metrics["ensemble"]
    assert 0 < ensemble["cv_accuracy"] < 1
    assert ensemble["dev_accuracy"] is None
    assert fresh.metrics["audit"] is None


def test_dev_can_join_the_folds(run: Run) -> None:
    run.make("data.use_dev=train")
    frame = read_pairs(run.work / "prepare" / "train.csv", labelled=True).frame
    assert frame["id"].tolist()[240:] == [f"dev-{name}" for name in run.table("dev")["id"]]
    assert frame["query1"].tolist()[240:] == run.table("dev")["query1"].tolist()
    assert len(np.load(run.work / "split" / "folds.npy")) == 300
    assert run.metrics["ensemble"]["dev_accuracy"] is None


def test_a_second_run_with_other_settings_waits_for_the_first(
    run: Run, capsys: pytest.CaptureFixture
) -> None:
    with exclusive(run.work / ".run.lock", "the first run"):
        second = threading.Thread(target=run.pipeline("augment.closure=1.0").run)
        second.start()
        second.join(2.0)
        assert second.is_alive()
        assert f"Another run is at work on {run.work}: waiting" in capsys.readouterr().err
        first_parts = [p.read_bytes() for p in sorted(run.work.glob("training-part/*/train.csv"))]
        assert len(first_parts) == 2
    second.join()
    parts = [p.read_bytes() for p in sorted(run.work.glob("training-part/*/train.csv"))]
    assert parts != first_parts


# Prediction.


def predict(
    run: Run, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, *overrides: str
) -> list[list[str]]:
    """Rows of the output file of `predict`, without its header."""
    source, target = run.folder / "input.csv", run.folder / "output.csv"
    frame.to_csv(source, index=False)
    # The data directory is not named: what is trained does not need it any more.
    options = [text for text in settings(run.folder, run.pretrained) if "data.dir" not in text]
    arguments = ["predict", str(source), str(target), "--profile", "tiny", *options]
    monkeypatch.setattr("sys.argv", ["src", *arguments, *overrides])
    entry()
    rows = pd.read_csv(target, dtype=str, keep_default_na=False)
    assert list(rows.columns) == ["id", "label"]
    return rows.to_numpy().tolist()


def test_prediction_repeats_the_runs_dev_score_and_keeps_odd_ids(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.make(*LEARNS)
    dev = run.table("dev")
    rows = predict(run, dev[["id", "query1", "query2"]], monkeypatch)
    assert [name for name, _ in rows] == dev["id"].tolist()
    labels = np.array([int(label) for _, label in rows])
    assert np.mean(labels == dev["label"]) == run.metrics["ensemble"]["dev_accuracy"]
    assert len(set(labels)) == 2, "this model is too dull for this test"

    order = np.random.default_rng(0).permutation(len(dev))
    names = ["007", "a,b", " blank", '"', *(f"{row}é" for row in range(len(dev) - 4))]
    shuffled = dev.iloc[order][["query2", "query1"]].assign(id=names)
    assert predict(run, shuffled, monkeypatch) == [
        [name, str(label)] for name, label in zip(names, labels[order], strict=True)
    ]


def test_both_decisions_are_delivered_and_the_setting_chooses(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """In groups, too, `predict` says what the run has said, whatever the order of the rows."""
    run.make(*LEARNS)
    folder = run.folder / "submissions" / "tiny"
    pairs, groups = (folder / f"submission.{way}.csv" for way in ("pairs", "groups"))
    assert pairs.read_bytes() != groups.read_bytes()
    for way in (pairs, groups):
        made = run.make(*LEARNS, f"ensemble.decide={way.name.split('.')[1]}")
        assert made <= {"submit", "report"}
        assert run.submission.read_bytes() == way.read_bytes()
    assert run.metrics["choice"] == {"way": "groups", "why": "ensemble.decide=groups"}

    test = run.table("test")
    order = np.random.default_rng(0).permutation(len(test))
    rows = predict(run, test.iloc[order], monkeypatch, "--groups")
    expected = dict(line.split(",") for line in groups.read_text().splitlines())
    assert dict(rows) == {name: expected[name] for name, _ in rows}
    with pytest.raises(SystemExit, match="2"):
        predict(run, test.drop_duplicates("query1"), monkeypatch, "--groups")
    assert "there are no groups to decide" in capsys.readouterr().err


def test_prediction_takes_the_settings_that_were_trained(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.make(*LEARNS)
    dev = run.table("dev")
    changed = (
        'members.siamese-fgm.features=["u*v"]',
        "members.cross-pgd.encoder=nowhere",
        "split.folds=3",
    )
    assert predict(run, dev, monkeypatch, *changed) == predict(run, dev, monkeypatch)


def test_prediction_by_a_mixture_of_two_trainings_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    run.pipeline("members.siamese-fgm.seed=5").train_some("siamese-fgm", 0)
    with pytest.raises(SystemExit, match="2"):
        predict(run, run.table("test"), monkeypatch)
    assert "was changed after its weights were tuned" in capsys.readouterr().err
    assert not (run.folder / "output.csv").exists()
    run.make()  # back to the settings of the run
    predict(run, run.table("test"), monkeypatch)


def test_a_storage_is_no_ones_business(run: Run) -> None:
    made = run.make(f"optuna.storage=sqlite:///{run.folder / 'secret.db'}")
    assert "tune" in made and (run.folder / "secret.db").is_file()
    for file in (run.folder / "submissions").rglob("*.*"):
        assert b"secret" not in file.read_bytes()


def test_prediction_by_an_ensemble_that_is_not_trained_is_refused(
    fresh: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit, match="2"):
        predict(fresh, fresh.table("test"), monkeypatch)
    message = capsys.readouterr().err
    assert message.startswith("error: The ensemble of profile 'tiny' is not trained")
    assert "bash run.sh --profile tiny" in message
    assert not (fresh.folder / "output.csv").exists()


# What survives.


def test_a_full_disk_leaves_the_previous_submission(run: Run) -> None:
    before = run.submission.read_bytes()
    decision = json.loads(run.decision)
    decision["threshold"] = -100.0
    (run.work / "tune" / "decision.json").write_text(json.dumps(decision))
    (step,) = submit(run.pipeline("ensemble.decide=pairs"))
    # A file may have 200 bytes: enough for the step's notes, not for its results.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
    try:
        with pytest.raises(OSError):
            step.run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert run.submission.read_bytes() == before
    assert (run.folder / "submissions" / "tiny" / "submission.csv").read_bytes() == before
    assert step.run()
    assert set(run.submission.read_text().splitlines()[1:]) == {
        f"{name},1" for name in run.table("test")["id"]
    }


class Child:
    """`python -m src run` in a process of its own, which can be killed like any other. It starts
    fast, because a server of processes has loaded the libraries once."""

    def __init__(self, run: Run, *overrides: str, name: str = "log") -> None:
        self.log = run.folder / name
        self.log.unlink(missing_ok=True)
        arguments = ["run", "--profile", "tiny", *settings(run.folder, run.pretrained), *overrides]
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(
            ["src.training.plan", "src.ensemble.logits", "src.ensemble.tune"]
            + ["src.report.summary", "src.data.prepare"]
            + ["optuna.storages._rdb.storage", "rich.console"]  # what these load late
        )
        self.process = context.Process(target=command, args=(self.log, arguments))
        self.process.start()

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    @property
    def steps(self) -> list[str]:
        """The steps that have begun."""
        return [step for step in STEPS if f"── {step}\n" in self.text]

    def wait_for(self, *steps: str) -> None:
        """Wait until one of the steps has begun, or the process has ended."""
        deadline = time.monotonic() + 600
        while not set(steps) & set(self.steps) and self.process.is_alive():
            assert time.monotonic() < deadline, self.text
            time.sleep(0.002)

    def finish(self) -> int | None:
        """Wait for the end; the exit code, negative for a signal."""
        self.process.join(600)
        return self.process.exitcode


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes find this repository and these tests."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "tests")]))
    monkeypatch.delenv("DATA_DIR", raising=False)


def test_kill_minus_9_at_any_moment_changes_nothing(
    tmp_path: Path, sample: Path, pretrained: Path, processes: None
) -> None:
    whole, killed = (Run(tmp_path / name, pretrained) for name in ("whole", "killed"))
    cut_sample(sample, whole.data)
    shutil.copytree(whole.data, killed.data)
    child, moments = Child(whole), []
    for step in STEPS:
        child.wait_for(step)
        moments.append(time.monotonic())
    assert child.finish() == 0, child.text
    durations = np.diff([*moments, time.monotonic()])

    # A kill in every fourth step, early, halfway and late in turn, each followed by the same
    # command.
    kills = 0
    for index, share in zip(range(0, len(STEPS), 4), cycle((0.1, 0.5, 0.9)), strict=False):
        child = Child(killed)
        child.wait_for(*STEPS[index:])
        time.sleep(share * durations[index])
        child.process.kill()
        kills += child.finish() == -signal.SIGKILL
    assert kills >= 4
    last = Child(killed)
    assert last.finish() == 0, last.text

    assert killed.submission.read_bytes() == whole.submission.read_bytes()
    assert killed.decision == whole.decision
    for logits in whole.pipeline().layout.logits_files("test"):
        copy = killed.folder / logits.relative_to(whole.folder)
        assert copy.read_bytes() == logits.read_bytes()


def test_ctrl_c_is_one_line_and_the_same_command_continues(fresh: Run, processes: None) -> None:
    child = Child(fresh)
    child.wait_for("train siamese-fgm fold 0")
    os.kill(child.process.pid, signal.SIGINT)
    assert child.finish() == 130
    assert "Traceback" not in child.text and "Aborted" not in child.text
    assert child.text.splitlines()[-1] == "Interrupted. The same command continues from here."


def test_two_runs_in_one_folder_share_the_work(run: Run, processes: None) -> None:
    first = Child(run, "augment.closure=0.5", name="first")
    first.wait_for("training-part fold 0")
    second = Child(run, "augment.closure=0.5", name="second")
    assert (first.finish(), second.finish()) == (0, 0), first.text + second.text
    assert sorted(first.steps + second.steps) == sorted(PARTS | TRAINING | PREDICTION | LAST)


# What the tiny profile is good for.


def test_the_tiny_profile_learns(tmp_path: Path, sample: Path, pretrained: Path) -> None:
    paths = [f"paths.work={tmp_path}", f"paths.pretrained={pretrained}", f"data.dir={sample}"]
    pipeline = Pipeline(load_config("tiny", paths))
    pipeline.train_some("siamese-fgm", 0)
    labels = pipeline.layout.table("train")["label"][pipeline.layout.fold_numbers() == 0]
    logits = np.load(pipeline.layout.logits_file("siamese-fgm", 0, "oof"))
    accuracy = np.mean((logits > 0) == (labels == 1))
    assert accuracy > max(labels.mean(), 1 - labels.mean()) + 0.06
