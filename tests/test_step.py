"""Steps, which are made once, and the files they write, which are whole or absent."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from src import step as step_module
from src.files import atomic_path, read_json, write_json, write_text
from src.step import Step

ROOT = Path(__file__).parents[1]


class Bench:
    """A step over an input and two source files; `makes` counts how often it was made."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.makes = folder / "made", 0
        self.input, self.result = folder / "input.txt", self.folder / "result.txt"
        self.delivered = folder / "delivered.txt"
        self.settings = {"trials": 3}
        self.code = folder / "code"
        self.input.write_text("input")
        (self.code / "room").mkdir(parents=True)
        for name in ("alone.py", "room/part.py", "room/page.html.j2", "room/lexicon.yaml"):
            (self.code / name).write_text("code")

    def make(self, folder: Path) -> None:
        self.makes += 1
        write_text(self.result, "result")
        write_text(self.delivered, "delivered")

    def step(self, make: Callable[[Path], object] | None = None) -> Step:
        return Step(
            "bench",
            self.folder,
            self.settings,
            [self.input],
            ["alone.py", "room"],
            make or self.make,
            [self.delivered],
        )


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = Bench(tmp_path)
    monkeypatch.setattr(step_module, "SOURCE", bench.code)
    return bench


@pytest.fixture
def made(bench: Bench) -> Bench:
    assert bench.step().run()
    return bench


def test_a_step_is_made_once_and_says_so(bench: Bench, capsys: pytest.CaptureFixture) -> None:
    assert bench.step().run()
    assert "── bench" in capsys.readouterr().err
    assert not bench.step().run()
    assert bench.makes == 1
    assert capsys.readouterr().err == ""


def test_a_file_that_only_looks_new_changes_nothing(made: Bench) -> None:
    made.input.write_text("input")
    os.utime(made.input, (1, 1))
    (made.code / "room" / "notes.txt").write_text("no code")
    assert not made.step().run()


def change_setting(bench: Bench) -> None:
    bench.settings = {"trials": 4}


@pytest.mark.parametrize(
    "change",
    [
        change_setting,
        lambda bench: bench.input.write_text("other"),
        lambda bench: (bench.code / "alone.py").write_text("other"),
        lambda bench: (bench.code / "room" / "part.py").write_text("other"),
        lambda bench: (bench.code / "room" / "new.py").write_text("other"),
        lambda bench: (bench.code / "room" / "page.html.j2").write_text("other"),
        lambda bench: (bench.code / "room" / "lexicon.yaml").write_text("other"),
        lambda bench: bench.result.unlink(),
        lambda bench: bench.delivered.unlink(),
        lambda bench: bench.delivered.write_text("another run's"),
    ],
    ids="setting input code room-code new-code template lexicon lost undelivered replaced".split(),
)
def test_what_it_depends_on_makes_it_again(made: Bench, change: Callable) -> None:
    change(made)
    assert made.step().run()
    assert made.makes == 2
    assert made.result.read_text() == "result"
    assert made.delivered.read_text() == "delivered"
    assert not made.step().run()


def test_a_step_that_raises_is_not_current_and_finds_its_traces_again(made: Bench) -> None:
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


def test_traces_of_other_settings_are_removed(bench: Bench) -> None:
    def fail(folder: Path) -> None:
        write_text(folder / "checkpoint", "half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bench.step(fail).run()
    bench.settings = {"trials": 4}
    bench.step().run()
    assert not (bench.folder / "checkpoint").exists()


def test_a_step_is_not_current_while_it_is_made(made: Bench) -> None:
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

print(Step("slow", root / "made", {}, [], [], make).run())
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
