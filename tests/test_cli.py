"""The command line: what it prints, what it refuses, and what it leaves alone."""

import codecs
import errno
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from tiny_run import ROOT, cut_sample, settings

from src.__main__ import entry
from src.config import load_config
from src.files import save_tensors
from src.pipeline import Pipeline


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Command = Callable[..., Outcome]


@pytest.fixture
def src(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Command:
    """`python -m src ARGUMENTS`, in this process."""
    monkeypatch.delenv("DATA_DIR", raising=False)

    def command(*arguments: object) -> Outcome:
        monkeypatch.setattr("sys.argv", ["src", *map(str, arguments)])
        code = 0
        try:
            entry()
        except SystemExit as end:
            code = end.code
        return Outcome(code, *capsys.readouterr())

    return command


@pytest.fixture
def options(tmp_path: Path, sample: Path, pretrained: Path) -> list[str]:
    """Options of a run in `tmp_path`, whose data directory is filled."""
    cut_sample(sample, tmp_path / "data", train=40, other=10)
    return ["--profile", "tiny", *settings(tmp_path, pretrained)]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_setting_that_bench_would_ignore_is_refused(src: Command) -> None:
    run = src("bench", "--quick", "training.epochs=9")
    assert run.code == 2 and "training.epochs=9 would change nothing here" in run.err


# Help.


def test_help_lists_the_stages_and_is_quick() -> None:
    # The time of the processor, because the clock on the wall also counts the neighbours' work.
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        shown = subprocess.run(
            [sys.executable, "-m", "src", "--help"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(times) < 0.5
    listed = {line.split()[0] for line in shown.stdout.splitlines() if line.strip()}
    stages = {"prepare", "split", "training-part", "train", "predict", "tune", "submit", "report"}
    others = {"run", "launch", "search", "mine", "cluster", "faq", "export", "audit", "compare"}
    assert listed >= stages | others | {"study", "bench", "pretrain", "sample"}


def test_help_loads_no_heavy_library() -> None:
    script = (
        "import sys; from src.__main__ import main; sys.argv = ['src', '--help']\n"
        "main(standalone_mode=False); print('loaded:', *sys.modules)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = set(shown.stdout.split("loaded:")[1].split())
    assert "click" in loaded
    heavy = {"torch", "transformers", "numpy", "pandas", "optuna", "matplotlib", "pydantic"}
    assert not loaded & heavy


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["run", "--speed", "9"], "No such option '--speed'"),
        (["train", "--fold", "two"], "'two' is not a valid integer"),
        (["predict", "only-one.csv"], "Name two files"),
    ],
)
def test_a_command_that_cannot_be_is_explained(
    src: Command, arguments: list[str], message: str
) -> None:
    outcome = src(*arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert "Usage:" in outcome.err and "Traceback" not in outcome.err


@pytest.mark.parametrize(
    "word, nearest", [("trian", "train"), ("tune2", "tune"), ("submission", "submit"), ("fly", "")]
)
def test_an_unknown_word_names_the_nearest_command(src: Command, word: str, nearest: str) -> None:
    outcome = src(word)
    assert outcome.code == 2 and "Traceback" not in outcome.err
    assert f"There is no command '{word}'" in outcome.err
    assert f"bash run.sh {nearest}" in outcome.err and "--help" in outcome.err


def test_settings_without_a_command_are_those_of_a_run(src: Command) -> None:
    for arguments in (["tune.trails=3"], ["--profile", "tiny", "tune.trails=3"]):
        outcome = src(*arguments)
        assert outcome.code == 2 and "tune.trails" in outcome.err


def test_a_commands_name_is_no_setting(src: Command, options: list[str], tmp_path: Path) -> None:
    assert src("split", *options).code == 0
    work = tmp_path / "work" / "tiny"
    assert (work / "split" / "folds.npy").is_file() and not (work / "training-part").exists()


@pytest.mark.parametrize(
    "override, message",
    [
        ("members.cross-pgd.architecture=triplet", "no architecture 'triplet'.*siamese, cross"),
        ("members.siamese-fgm.losses.focal=1", "no loss 'focal'.*contrastive"),
    ],
)
def test_what_is_not_registered_is_refused_before_anything_is_made(
    src: Command, options: list[str], tmp_path: Path, override: str, message: str
) -> None:
    outcome = src("run", *options, override)
    assert outcome.code == 2 and re.search(message, outcome.err)
    assert not (tmp_path / "work" / "tiny" / "prepare").exists()


# Errors in the data.

HEADER = "id,category,query1,query2,label\n"
Files = dict[str, str | bytes | None]  # None: a directory of that name


def same_component(rows: int) -> str:
    return HEADER + "".join(
        f"{row},感冒,感冒怎么办,第{row}个问题,{row % 2}\n" for row in range(rows)
    )  # noqa: E501


@pytest.mark.parametrize(
    "files, words",
    [
        ({"train.csv": HEADER}, "train.csv no rows"),
        ({"train.csv": ""}, "train.csv empty header"),
        ({"train.csv": "id,query1,label\n0,甲,1\n"}, "train.csv, line 1: 'query2'"),
        ({"train.csv": HEADER + "0,感冒,甲,乙,2\n"}, "train.csv, line 2, column label: '2'"),
        ({"train.csv": HEADER + "0,感冒,甲,乙,1\n1,感冒,, 丙,0\n"}, "line 3, column query1: empty"),
        ({"train.csv": HEADER + "0,感冒,甲,乙,丙,1\n"}, "train.csv, line 2: 6 fields 5"),
        ({"train.csv": b"PK\x03\x04\x00\x00\x00"}, "train.csv binary"),
        ({"train.csv": codecs.BOM_UTF8 + b"query1,query2,label\n\xff\xfe,a,1\n"}, "line 2 decoded"),
        ({"train.csv": None}, "train.csv directory"),
        ({"train.csv": same_component(20)}, "1 group(s) 2 folds"),
        ({"dev.csv": HEADER + "0,感冒,甲,乙,-1\n"}, "dev.csv label"),
        ({"dev.csv": HEADER + "0,感冒,甲,乙,yes\n"}, "dev.csv, line 2, column label: 'yes'"),
        (
            {"test.csv": HEADER + "7,感冒,甲,乙,\n7,感冒,甲,丙,\n"},
            "test.csv, line 3, column id: '7'",
        ),  # noqa: E501
        ({"test.csv": HEADER + '0,感冒,"甲,乙,\n'}, "test.csv, line 2 quotes"),
        ({"test_20200228.csv": HEADER + "0,感冒,甲,乙,\n"}, "test.csv test_20200228.csv differ"),
    ],
)
def test_an_error_in_the_data_is_one_message(
    src: Command, options: list[str], tmp_path: Path, files: Files, words: str
) -> None:
    data = tmp_path / "data"
    for name, content in files.items():
        (data / name).unlink(missing_ok=True)
        if content is None:
            (data / name).mkdir()
        else:
            raw = content.encode() if isinstance(content, str) else content
            (data / name).write_bytes(raw)
    refused(src, tmp_path, words, "run", *options)


@pytest.mark.parametrize(
    "override, words",
    [
        ("data.dir=nowhere", "nowhere no training file does not exist data.dir="),
        ("data.external=nowhere.csv", "data.external=nowhere.csv no such file"),
        ("tune.trails=3", "tune.trails"),
        ("members.cross-pgd.encoder=data", "config.json"),
    ],
)
def test_an_error_in_the_settings_is_one_message(
    src: Command,
    options: list[str],
    tmp_path: Path,
    override: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(src, tmp_path, words, "run", *options, "members.siamese-fgm.encoder=data", override)


def test_dev_cannot_join_where_there_is_none(
    src: Command, options: list[str], tmp_path: Path
) -> None:
    (tmp_path / "data" / "dev.csv").unlink()
    refused(src, tmp_path, "use_dev=train no dev file", "run", *options, "data.use_dev=train")


def refused(src: Command, folder: Path, words: str, *arguments: object) -> None:
    """The command ends with one message of all `words`; data and submissions stay as they are."""
    submissions = folder / "submissions" / "submission.csv"
    submissions.parent.mkdir()
    submissions.write_text("previous")
    before = contents(folder / "data"), contents(folder / "submissions")
    outcome = src(*arguments)
    assert outcome.code == 2
    lines = [line for line in outcome.err.splitlines() if not line.startswith("── ")]
    assert lines[0].startswith("error: ")
    assert sum("error: " in line for line in lines) == 1
    assert "Traceback" not in outcome.err
    for word in words.split():
        assert word in "\n".join(lines)
    assert (contents(folder / "data"), contents(folder / "submissions")) == before


# Where the data is.


@pytest.mark.parametrize("name", ["a=b, ü c", "{x: [1", "${data}", "2020", "#1 'q\" 数据"])
def test_the_data_directory_may_have_any_name(
    src: Command, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "data").rename(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA_DIR", name)
    others = [option for option in options if not option.startswith("data.dir=")]
    assert src("prepare", *others).code == 0
    facts = json.loads((tmp_path / "work" / "tiny" / "prepare" / "data.json").read_text())
    assert facts["files"]["train"]["pairs"] == 40 and not facts["is_sample"]


def test_the_sample_never_takes_the_place_of_a_submission(options: list[str], tmp_path: Path):
    overrides = [option for option in options if "=" in option]
    real = Pipeline(load_config("tiny", overrides))
    sample = Pipeline(load_config("tiny", overrides))
    sample.sources = replace(real.sources, is_sample=True)
    top = tmp_path / "submissions" / "submission.csv"
    assert real.submissions[1:] == [top] and sample.submissions == [
        tmp_path / "submissions" / "tiny-sample" / "submission.csv"
    ]


def test_the_sample_stands_in_loudly_and_apart(tmp_path: Path) -> None:
    clone, elsewhere = tmp_path / "clone", tmp_path / "elsewhere"
    shutil.copytree(ROOT / "src", clone / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "data" / "sample", clone / "data" / "sample")
    elsewhere.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(clone)}
    environment.pop("DATA_DIR", None)
    command = [sys.executable, "-m", "src", "prepare", "--profile", "tiny", "data.mirror=off"]
    ended = subprocess.run(
        command, cwd=elsewhere, env=environment, capture_output=True, text=True, check=True
    )
    assert "SAMPLE" in ended.stderr and str(clone / "data" / "raw") in ended.stderr
    assert "Asking" not in ended.stderr, "the mirror was asked"
    made = clone / "data" / "work" / "tiny-sample" / "prepare"
    assert json.loads((made / "data.json").read_text())["is_sample"]
    assert not list(elsewhere.iterdir())


# Other commands.


def test_the_audit_counts_the_article_split(src: Command, competition: Path) -> None:
    files = [competition / "article-split" / name for name in ("my_train.csv", "my_dev.csv")]
    result = json.loads(src("audit", *files, "--json").out)
    assert (result["pairs"], result["exact_pairs"]) == (800, 101)
    assert round(100 * result["both_share"], 2) == 70.75
    assert "101 of 800" in result["verdict"]
    table = src("audit", *files).out
    assert "101" in table and "70.75%" in table


def test_the_audit_of_a_file_with_itself(src: Command, sample: Path) -> None:
    result = json.loads(src("audit", sample / "dev.csv", sample / "dev.csv", "--json").out)
    assert result["exact_share"] == result["both_share"] == 1.0
    refusal = src("audit", sample / "dev.csv", sample / "nothing.csv")
    assert refusal.code == 2 and refusal.err.startswith("error: ")


def test_a_member_of_another_ensemble_is_refused(src: Command, options: list[str]) -> None:
    outcome = src("train", *options, "--member", "roberta")
    assert outcome.code == 2
    assert "no member 'roberta'" in outcome.err and "siamese-fgm" in outcome.err


@pytest.mark.parametrize("moment", ["while it loads", "while it works"])
def test_ctrl_c_says_how_to_go_on(
    src: Command, options: list[str], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    target = {"while it loads": "__init__", "while it works": "run"}[moment]
    monkeypatch.setattr(Pipeline, target, interrupt)
    outcome = src("run", *options)
    assert outcome.code == 130
    assert outcome.err.split("\n")[-2] == "Interrupted. The same command continues from here."
    assert "Aborted" not in outcome.err


def test_weights_that_do_not_fit_are_an_error_of_the_system(tmp_path: Path) -> None:
    """The library's own error is none, and would end in a traceback. A limit stands for a disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError) as caught:
            save_tensors({"weight": torch.ones(100_000)}, tmp_path / "model.safetensors")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno == errno.EFBIG
    assert caught.value.filename == str(tmp_path / "model.safetensors")


def test_a_place_that_cannot_be_written_is_one_message(
    src: Command, options: list[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    outcome = src("prepare", *options, f"paths.work={tmp_path / 'file'}")
    assert outcome.code == 2 and outcome.err.startswith("error: ")
    assert str(tmp_path / "file") in outcome.err and "Traceback" not in outcome.err
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense", "cannot be opened (ArgumentError)"),
        ("mysql+nodriver://me:secret@host/name", "cannot be opened (NoSuchModuleError)"),
        ("mysql://me:secret@host/name", "the driver of this kind of database is not installed"),
        ("mysql://me:secret@host:port/name", "cannot be opened (ValueError)"),
        ("sqlite:////nowhere/study.db", "cannot be opened (OperationalError)"),
    ],
)
def test_a_storage_is_tried_before_anything_is_trained(
    src: Command, options: list[str], tmp_path: Path, url: str, said: str
) -> None:
    outcome = src("run", *options, f"optuna.storage={url}")
    assert outcome.code == 2 and said in outcome.err
    assert "secret" not in outcome.err and not (tmp_path / "work").exists()


def test_a_full_disk_is_one_message(
    src: Command, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "model.safetensors")

    monkeypatch.setattr(Pipeline, "run", fill)
    outcome = src("run", *options)
    assert outcome.code == 2 and "model.safetensors" in outcome.err
    assert "run the same command" in outcome.err and "Traceback" not in outcome.err


# run.sh, with a Python that only writes down what it is asked to do.

STUB = """#!/usr/bin/env bash
printf '%s|%s|%s\\n' "$*" "$PWD" "${PYTHONPATH:-}" >> "$STUB_LOG"
case "$1 ${2:-}" in
  -c*) exit "${STUB_TOO_OLD:-0}" ;;
  --version*) echo "Python 3.9.1" ;;
  "-m venv") venv="${*: -1}" && mkdir -p "$venv/bin" && cp "$0" "$venv/bin/python" ;;
  "-m pip") [[ ! -e "$STUB_LOG.offline" ]] ;;
esac
"""


class Clone:
    """A copy of run.sh and the requirements, started from another directory."""

    def __init__(self, folder: Path) -> None:
        self.root, self.elsewhere, self.log = folder / "a clone", folder / "else", folder / "log"
        self.root.mkdir()
        self.elsewhere.mkdir()
        for name in ("run.sh", "requirements.txt", "requirements-lab.txt"):
            shutil.copy(ROOT / name, self.root)
        stub = folder / "python"
        stub.write_text(STUB)
        stub.chmod(0o755)
        self.environment = {"PATH": os.environ["PATH"], "PYTHON": str(stub)}
        self.environment["STUB_LOG"] = str(self.log)

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        """`bash .../run.sh ARGUMENTS`; forgets what was asked before."""
        self.log.unlink(missing_ok=True)
        return subprocess.run(
            ["bash", self.root / "run.sh", *arguments],
            cwd=self.elsewhere,
            env=self.environment | environment,
            capture_output=True,
            text=True,
        )

    @property
    def asked(self) -> list[list[str]]:
        """Arguments, working directory and PYTHONPATH of every call of Python."""
        return [line.split("|") for line in self.log.read_text().splitlines()]


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


@pytest.mark.parametrize(
    "arguments, asked, at_root",
    [
        ([], "-m src", False),
        (["--profile", "tiny", "tune.trials=3"], "-m src --profile tiny tune.trials=3", False),
        (["tune", "--profile", "tiny"], "-m src tune --profile tiny", False),
        (["launch", "2", "train"], "-m src launch 2 train", False),
        (["predict", "a.csv", "b.csv"], "-m src predict a.csv b.csv", False),
        (["audit", "a.csv", "b.csv", "--json"], "-m src audit a.csv b.csv --json", False),
        (["compare", "a", "b"], "-m src compare a b", False),
        (["test", "-k", "step"], "-m pytest -n 2 --dist worksteal -k step", True),
    ],
)
def test_run_sh_calls_the_command(
    clone: Clone, arguments: list[str], asked: str, at_root: bool
) -> None:
    assert clone.run(*arguments).returncode == 0
    call, folder, path = clone.asked[-1]
    assert call == asked
    assert folder == str(clone.root if at_root else clone.elsewhere)
    assert path.split(":")[0] == str(clone.root)


def test_run_sh_installs_once_and_again_after_a_failure(clone: Clone) -> None:
    def installations() -> int:
        return sum(call.startswith("-m pip install") for call, *_ in clone.asked)

    offline = Path(f"{clone.log}.offline")
    offline.touch()
    assert clone.run("--profile", "tiny").returncode != 0
    assert "-m src" not in clone.log.read_text()
    offline.unlink()
    assert clone.run().returncode == 0 and installations() == 1
    assert clone.run().returncode == 0 and installations() == 0
    with open(clone.root / "requirements.txt", "a") as file:
        file.write("another\n")
    assert clone.run().returncode == 0 and installations() == 1


def test_run_sh_wants_python_3_11(clone: Clone) -> None:
    ended = clone.run(STUB_TOO_OLD="1")
    assert ended.returncode == 2
    assert "Python 3.11, 3.12 or 3.13" in ended.stderr and "Python 3.9.1" in ended.stderr
    assert not (clone.root / ".venv").exists()


@pytest.mark.parametrize("command", ["study", "bench", "pretrain", "test"])
def test_what_only_the_laboratory_needs_is_installed_when_it_is_first_needed(
    clone: Clone, command: str
) -> None:
    def installed() -> list[str]:
        return [call.split("/")[-1] for call, *_ in clone.asked if call.startswith("-m pip inst")]

    clone.run()
    assert installed() == ["requirements.txt"]
    clone.run(command)
    assert installed() == ["requirements-lab.txt"]
    clone.run(command)
    assert installed() == []


# The solution without the laboratory.


def test_the_solution_runs_without_the_laboratory(tmp_path: Path, options: list[str]) -> None:
    shutil.copytree(
        ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "lab")
    )
    ended = subprocess.run(
        [sys.executable, "-m", "src", "training-part", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "work" / "tiny" / "training-part" / "fold1" / "train.csv").is_file()
