"""Two processes compute what one computes: same sums within rounding, same weights on both."""

import os
import runpy
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
from safetensors.torch import load_file
from tiny_run import ROOT, cut_sample, settings

from src.__main__ import main
from src.config import load_config
from src.errors import UserError
from src.pipeline import Pipeline, train

# 49 pairs in batches of 8: of the last batch's single pair, one process gets nothing.
SCRIPT = """
import sys
from pathlib import Path

from accelerate import PartialState
from safetensors.torch import save_file

from src.config import MemberConfig
from src.data.pairs import read_pairs
from src.models.registry import build_model, read_pairs_for
from src.training.fold_model import train_fold_model
from src.training.loop import Conduct, LabelledPairs, train
from src.training.objective import Objective
from tiny_run import fold_files

data, pretrained, out = map(Path, sys.argv[1:])
frame = read_pairs(data / "train.csv", labelled=True).frame
training, valid = frame.iloc[:49], frame.iloc[49:99].reset_index(drop=True)
fgm = {"method": "fgm", "epsilon": 2.7}
pgd = {"method": "pgd", "epsilon": 2.7, "steps": 2}
tasks = {
    "siamese-fgm": ("siamese", fgm, 1),
    "cross-fgm": ("cross", fgm, 1),
    "cross-pgd": ("cross", pgd, 1),
    "siamese-fgm-accumulated": ("siamese", fgm, 2),
    "cross-pgd-accumulated": ("cross", pgd, 2),
    "cross-accumulated": ("cross", {"method": "none"}, 2),
}
for name, (architecture, adversarial, accumulation) in tasks.items():
    member = MemberConfig(
        architecture=architecture, encoder="tiny",
        training={
            "epochs": 1, "batch_pairs": 8, "accumulation": accumulation, "encoder_lr": 1e-3,
            "dropout": 0.0, "precision": "fp32", "adversarial": adversarial,
        },
    )
    model, tokenizer = build_model(member, pretrained, 1)
    read = [
        LabelledPairs(read_pairs_for(member, part, tokenizer), part["label"].to_numpy())
        for part in (training, valid)
    ]
    conduct = Conduct(name, 5, 0.5, out / "none.safetensors")
    history = train(model, *read, member.training, Objective.of(member), conduct)[0]
    state, losses = PartialState(), {k: str(v) for k, v in history[0].items()}
    file = out / f"{name}-{state.process_index}of{state.num_processes}.safetensors"
    save_file(model.state_dict(), file, metadata=losses)
folder = out / f"files{state.process_index}of{state.num_processes}"
folder.mkdir()
train_fold_model(
    member.model_copy(update={"training": member.training.model_copy(update={"epochs": 2})}),
    fold_files(folder, training, valid), 0.5, pretrained, None,
    out / f"model{state.num_processes}",
)
"""
TASKS = [
    "siamese-fgm",
    "cross-fgm",
    "cross-pgd",
    "siamese-fgm-accumulated",
    "cross-pgd-accumulated",
    "cross-accumulated",
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, pretrained: Path, sample: Path) -> Path:
    """The folder of the weights that one process and two processes trained."""
    out = tmp_path_factory.mktemp("distributed")
    script = out / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    arguments = [str(path) for path in (script, sample, pretrained, out)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", arguments)
        runpy.run_path(str(script), run_name="__main__")
    run = launch(*arguments)
    assert run.returncode == 0, run.stderr[-4000:]
    return out


def launch(*arguments: str) -> subprocess.CompletedProcess:
    """Run a script or `-m module` with its arguments in two processes."""
    # `accelerate launch --cpu` starts several processes through MPI only. The GPU way starts
    # them anywhere, and without a GPU they talk through gloo.
    command = [
        sys.executable,
        "-m",
        "accelerate.commands.launch",
        "--multi_gpu",
        "--num_processes",
        "2",
        "--num_machines",
        "1",
        "--mixed_precision",
        "no",
        "--dynamo_backend",
        "no",
        "--main_process_port",
        "0",
    ]
    environment = os.environ | {
        "ACCELERATE_USE_CPU": "true",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
    }
    return subprocess.run(
        [*command, *arguments], env=environment, capture_output=True, text=True, timeout=300
    )


def weights(runs: Path, name: str, process: str) -> dict[str, torch.Tensor]:
    return load_file(runs / f"{name}-{process}.safetensors")


@pytest.mark.parametrize("name", TASKS)
def test_both_processes_hold_the_same_weights(runs: Path, name):
    first, second = weights(runs, name, "0of2"), weights(runs, name, "1of2")
    assert all(torch.equal(first[key], second[key]) for key in first)


@pytest.mark.parametrize("name", TASKS)
def test_two_processes_train_the_weights_of_one(runs: Path, name):
    """Tensor by tensor in norm: Adam turns rounding into movement where a gradient is about zero.

    That is all there is to a key's bias, which softmax does not see.
    """
    one, two = weights(runs, name, "0of1"), weights(runs, name, "0of2")
    for key in one:
        if not key.endswith("key.bias"):
            assert (two[key] - one[key]).norm() <= 1e-4 * one[key].norm(), key


def test_a_fold_model_is_written_once_and_predicts_the_same(runs: Path):
    one, two = runs / "model1", runs / "model2"
    names = sorted(path.name for path in one.iterdir())
    assert names == ["history.json", "member.json", "model.safetensors", "oof.npy"]
    assert sorted(path.name for path in two.iterdir()) == names
    np.testing.assert_allclose(np.load(two / "oof.npy"), np.load(one / "oof.npy"), atol=1e-3)


def test_a_launched_command_trains_what_an_ordinary_run_finds_done(
    tmp_path: Path, pretrained: Path, sample: Path
):
    """The steps before training are made by one process, the weights by both."""
    cut_sample(sample, tmp_path / "data")
    overrides = settings(tmp_path, pretrained)
    command = ["train", "--profile", "tiny", "--member", "siamese-fgm", "--fold", "1", *overrides]
    run = subprocess.run(
        [sys.executable, "-m", "src", "launch", "2", *command],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    assert run.stderr.count("── train siamese-fgm fold 1") == 1
    current = {
        step.name: step.is_current() for step in train(Pipeline(load_config("tiny", overrides)))
    }
    assert [name for name, done in current.items() if done] == ["train siamese-fgm fold 1"]


def started(tmp_path: Path, pretrained: Path, sample: Path, *overrides: str) -> subprocess.Popen:
    """A launch of the tiny profile's whole run in two processes."""
    cut_sample(sample, tmp_path / "data")
    command = ["run", "--profile", "tiny", *settings(tmp_path, pretrained), *overrides]
    return subprocess.Popen(
        [sys.executable, "-m", "src", "launch", "2", *command],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_what_is_no_training_the_first_process_does_alone(
    tmp_path: Path, pretrained: Path, sample: Path
):
    run = started(tmp_path, pretrained, sample, "split.folds=2", "training.epochs=1")
    output, log = run.communicate(timeout=300)
    assert run.returncode == 0, log[-4000:]
    assert output.count("\nreport: ") == log.count("── tune\n") == log.count("── submit\n") == 1
    assert log.count("── training in 2 processes") == 1
    assert (tmp_path / "submissions" / "submission.csv").is_file()
    assert not list(tmp_path.rglob(".*launch*"))


def test_a_dead_process_ends_the_others_with_a_message(
    tmp_path: Path, pretrained: Path, sample: Path
):
    run = started(tmp_path, pretrained, sample, "training.epochs=1000")
    try:
        family = psutil.Process(run.pid)
        deadline = time.monotonic() + 120
        while not list(tmp_path.rglob("checkpoint.safetensors")):  # both are in the middle of it
            assert time.monotonic() < deadline and run.poll() is None
            time.sleep(0.2)
        workers = [p for p in family.children() if p.environ().get("RANK") in ("0", "1")]
        assert len(workers) == 2
        next(p for p in workers if p.environ()["RANK"] == "1").kill()
        _, log = run.communicate(timeout=60)
    finally:
        run.kill()
    assert run.returncode == 2
    assert "Process 1 of the 2 has died (exit code -9)" in log and "continues from there" in log
    assert not any(p.is_running() for p in workers)


def test_a_command_for_one_process_is_not_launched():
    with pytest.raises(UserError, match="'study' works in one process: bash run.sh study pooling"):
        main(["launch", "2", "study", "pooling"], standalone_mode=False)
