"""Steps, which are made once, and the files they write, which are whole or absent."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from src.files import atomic_path, read_json, write_json, write_text
from src.step import Step

ROOT = Path(__file__).parents[1]


class Workshop:
    """A step over an input; `makes` counts how often it was made."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.makes = folder / "made", 0
        self.input, self.result = folder / "input.txt", self.folder / "result.txt"
        self.delivered, self.superseded = folder / "delivered.txt", folder / "superseded" / "made"
        self.settings: dict = {"trials": 3}
        self.code = {"room/part.py": "1"}
        self.input.write_text("input")

    def make(self, folder: Path) -> None:
        self.makes += 1
        write_text(self.result, "result")
        write_text(self.delivered, "delivered")

    def step(self, make: Callable[[Path], object] | None = None, keep: bool = False) -> Step:
        return Step(
            "something",
            self.folder,
            make or self.make,
            reads=[self.input],
            settings=self.settings,
            delivers=[self.delivered],
            superseded=self.superseded if keep else None,
        )


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    workshop = Workshop(tmp_path)
    monkeypatch.setattr("src.step.code_of", lambda *_: dict(workshop.code))
    return workshop


@pytest.fixture
def made(workshop: Workshop) -> Workshop:
    assert workshop.step().run()
    return workshop


def test_a_step_is_made_once_and_says_so(workshop: Workshop, capsys: pytest.CaptureFixture) -> None:
    assert workshop.step().run()
    assert "── something" in capsys.readouterr().err
    assert not workshop.step().run()
    assert workshop.makes == 1
    assert capsys.readouterr().err == ""


def test_a_file_that_only_looks_new_changes_nothing(made: Workshop) -> None:
    made.input.write_text("input")
    os.utime(made.input, (1, 1))
    assert not made.step().run()


def test_a_folder_that_has_moved_is_still_current(made: Workshop, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    made.folder.rename(elsewhere)
    (tmp_path / "deeper").mkdir()
    made.input = made.input.rename(tmp_path / "deeper" / "input.txt")
    made.folder = elsewhere
    assert not made.step().run()


def change_setting(workshop: Workshop) -> None:
    workshop.settings = {"trials": 4}


def change_code(workshop: Workshop) -> None:
    workshop.code = {"room/part.py": "2"}


CHANGES = {
    "settings trials: 3 → 4": change_setting,
    "code room/part.py": change_code,
    "input .*/input.txt": lambda workshop: workshop.input.write_text("other"),
    "a file of it is gone or was replaced": lambda workshop: workshop.result.unlink(),
    "a file of it is gone": lambda workshop: workshop.delivered.unlink(),
    "or was replaced": lambda workshop: workshop.delivered.write_text("another run's"),
}


@pytest.mark.parametrize("why", CHANGES)
def test_what_it_depends_on_makes_it_again(made: Workshop, why: str) -> None:
    assert made.step().changes({}) is None
    CHANGES[why](made)
    assert re.search(why, made.step().changes({}) or "")
    assert made.step().run()
    assert made.makes == 2
    assert made.result.read_text() == "result"
    assert made.delivered.read_text() == "delivered"
    assert not made.step().run()


def test_what_follows_from_a_step_that_is_made_again_says_so(made: Workshop) -> None:
    assert made.step().changes({made.input.parent: "train 1"}) == "follows from train 1"
    made.input.unlink()
    assert "follows from" in (made.step().changes({}) or "")


def test_nested_settings_are_named(workshop: Workshop) -> None:
    workshop.settings = {"member": {"training": {"epochs": 4, "clip": 1}}}
    workshop.step().run()
    workshop.settings = {"member": {"training": {"epochs": 3, "clip": 1}}}
    assert workshop.step().changes({}) == "settings member.training.epochs: 4 → 3"


def test_a_step_that_raises_is_not_current_and_finds_its_traces_again(made: Workshop) -> None:
    made.settings = {"trials": 4}

    def fail(folder: Path) -> None:
        assert not made.result.exists(), "the result of other settings is still there"
        write_text(folder / "checkpoint", "half")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        made.step(fail).run()
    assert not made.step().is_current()

    seen = []
    made.step(lambda folder: seen.append((folder / "checkpoint").read_text())).run()
    assert seen == ["half"]


def test_traces_of_other_settings_are_removed(workshop: Workshop) -> None:
    def fail(folder: Path) -> None:
        write_text(folder / "checkpoint", "half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workshop.step(fail).run()
    workshop.settings = {"trials": 4}
    workshop.step().run()
    assert not (workshop.folder / "checkpoint").exists()


# What took long is moved aside.


def make_numbered(workshop: Workshop, trials: int) -> bool:
    """Make the step, whose result tells its setting; True when something was made."""
    workshop.settings = {"trials": trials}
    return workshop.step(
        lambda folder: write_text(folder / "weights", str(trials)), keep=True
    ).run()


def test_results_of_other_settings_move_aside_and_come_back(
    workshop: Workshop, capsys: pytest.CaptureFixture
) -> None:
    assert make_numbered(workshop, 3) and make_numbered(workshop, 4)
    assert (workshop.superseded / "weights").read_text() == "3"
    assert read_json(workshop.superseded / "done.json")["settings"] == {"trials": 3}
    assert not make_numbered(workshop, 3)
    assert "taken back" in capsys.readouterr().err
    assert (workshop.folder / "weights").read_text() == "3"
    assert (workshop.superseded / "weights").read_text() == "4"
    assert not make_numbered(workshop, 4)


def test_the_latest_superseded_result_is_kept(workshop: Workshop) -> None:
    for trials in (3, 4, 5):
        assert make_numbered(workshop, trials)
    assert (workshop.superseded / "weights").read_text() == "4"
    assert make_numbered(workshop, 3)


def test_half_of_a_training_moves_aside_and_is_continued(workshop: Workshop) -> None:
    def fail(folder: Path) -> None:
        write_text(folder / "checkpoint", "half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workshop.step(fail, keep=True).run()
    assert make_numbered(workshop, 4)
    assert (workshop.superseded / "checkpoint").read_text() == "half"
    workshop.settings = {"trials": 3}
    seen = []
    step = workshop.step(lambda folder: seen.append((folder / "checkpoint").read_text()), keep=True)
    assert step.run() and seen == ["half"]
    assert (workshop.superseded / "weights").read_text() == "4"


def test_what_an_earlier_version_has_left_moves_aside(workshop: Workshop) -> None:
    write_text(workshop.folder / "weights", "old")
    write_json(workshop.folder / "done.json", {"fingerprint": "abc", "files": ["weights"]})
    assert workshop.step().changes({}) is None
    assert make_numbered(workshop, 3)
    assert (workshop.superseded / "weights").read_text() == "old"


def test_a_step_is_not_current_while_it_is_made(made: Workshop) -> None:
    made.delivered.unlink()

    def deliver_and_look(folder: Path) -> None:
        made.make(folder)
        assert not made.step().is_current()

    assert made.step(deliver_and_look).run()


SLOW_STEP = """
import sys, time
from pathlib import Path
from src.step import Step

root = Path(sys.argv[1])

def make(folder):
    with open(root / "makes", "a") as file:
        file.write("made\\n")
    while not (root / "go").exists():
        time.sleep(0.01)

print(Step("slow", root / "made", make).run())
"""


def start_slow_step(root: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", SLOW_STEP, root],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=open(root / "log", "a"),
        text=True,
    )


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def test_a_second_process_waits_and_then_has_nothing_to_do(tmp_path: Path) -> None:
    first = start_slow_step(tmp_path)
    wait_until((tmp_path / "makes").exists)
    second = start_slow_step(tmp_path)
    wait_until(lambda: "waiting for it" in (tmp_path / "log").read_text())
    (tmp_path / "go").touch()
    assert first.communicate(timeout=600)[0] == "True\n"
    assert second.communicate(timeout=600)[0] == "False\n"
    assert (tmp_path / "makes").read_text() == "made\n"


def test_kill_minus_9_frees_the_step(tmp_path: Path) -> None:
    killed = start_slow_step(tmp_path)
    wait_until((tmp_path / "makes").exists)
    killed.kill()
    assert killed.wait() == -signal.SIGKILL
    (tmp_path / "go").touch()
    assert start_slow_step(tmp_path).communicate(timeout=600)[0] == "True\n"


# Files.


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_json_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    content = {"问": ["吗？", 0.1, None], "b": {"c": True}}
    write_json(tmp_path / "new" / "folder" / "a.json", content)
    assert read_json(tmp_path / "new" / "folder" / "a.json") == content
    assert "吗？" in (tmp_path / "new" / "folder" / "a.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()])
def test_a_writer_that_fails_leaves_the_previous_file(tmp_path: Path, error: BaseException) -> None:
    target = tmp_path / "submission.csv"
    write_text(target, "previous")
    with pytest.raises(type(error)), atomic_path(target) as temporary:
        temporary.write_text("half of the ne")
        assert target.read_text() == "previous"
        raise error
    assert contents(tmp_path) == {"submission.csv": "previous"}


def test_a_full_disk_leaves_the_previous_file(tmp_path: Path) -> None:
    target = tmp_path / "submission.csv"
    write_text(target, "previous")
    # A limit on the size of files fails in the middle of a write, like a disk that is full.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError):
            write_text(target, "0,1\n" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert contents(tmp_path) == {"submission.csv": "previous"}


def test_kill_minus_9_in_the_middle_of_a_write_leaves_the_previous_file(tmp_path: Path) -> None:
    target = tmp_path / "submission.csv"
    write_text(target, "previous")
    script = (
        "import os, signal, sys; from pathlib import Path; from src.files import atomic_path\n"
        "with atomic_path(Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half of the ne'); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, target], cwd=ROOT)
    assert killed.returncode == -signal.SIGKILL
    assert target.read_text() == "previous"
    write_text(target, "next")
    assert contents(tmp_path) == {"submission.csv": "next"}
