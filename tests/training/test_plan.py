"""The plan before training: what it says is what comes, and what does not fit is refused."""

import shutil
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch
from tiny_run import cut_sample, fold_files, settings

from src.config import MemberConfig, load_config
from src.data.pairs import read_pairs
from src.errors import UserError
from src.files import read_json
from src.pipeline import Pipeline
from src.training import plan as planning
from src.training.fold_model import FoldFiles, train_fold_model
from src.training.plan import Plan, make_plan, refuse_full_disk

Usage = namedtuple("Usage", "total used free")
PLAN = Plan("m", 3, 5, 7, "fp32, as set", 1.0, 2.5, 180.0)


@pytest.fixture
def files(tmp_path: Path, sample: Path) -> FoldFiles:
    frame = read_pairs(sample / "train.csv", labelled=True).frame.iloc[:64]
    return fold_files(tmp_path, frame, frame.iloc[:16].reset_index(drop=True))


def member(**training) -> MemberConfig:
    settings = {"epochs": 3, "batch_pairs": 16, "precision": "bf16"} | training
    return MemberConfig(architecture="siamese", encoder="tiny", training=settings)


@pytest.mark.usefixtures("one_attempt")
def test_steps_and_disk_are_those_of_the_training(
    files: FoldFiles, tmp_path: Path, pretrained: Path, monkeypatch: pytest.MonkeyPatch
):
    plan = make_plan("m", member(accumulation=2), [files, files], pretrained)
    assert plan.folds == 2
    assert plan.precision == "bf16, as set" and plan.seconds > 0 and plan.memory_gb > 0

    steps, kept, step = [], [], torch.optim.AdamW.step
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda o, *a: steps.append(1) or step(o, *a))
    unlink = Path.unlink

    def keeping(path: Path, **options) -> None:
        if path.name == "checkpoint.safetensors":
            kept.append(path.stat().st_size)
        unlink(path, **options)

    monkeypatch.setattr(Path, "unlink", keeping)
    train_fold_model(member(accumulation=2), files, 0.0, pretrained, None, tmp_path)
    assert len(steps) == plan.steps
    weights = (tmp_path / "model.safetensors").stat().st_size
    assert plan.disk_gb == pytest.approx((2 * weights + 2 * kept[0]) / 1e9, abs=0.01)


def test_a_network_that_does_not_fit_is_refused_before_its_first_step(
    files: FoldFiles, pretrained: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(planning, "fit", lambda *_: pytest.fail("a step was taken"))
    memory = psutil.virtual_memory()._replace(available=10**4)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: memory)
    with pytest.raises(UserError, match=r"m: 0 M parameters need .* GB .*members\.m\.encoder"):
        make_plan("m", member(), [files], pretrained)


def test_a_trial_that_runs_out_of_memory_is_repeated_with_half_a_batch(
    files: FoldFiles, pretrained: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    tried, fit = [], planning.fit

    def short_of_memory(network, *arguments):
        tried.append(network.member.training.batch_pairs)
        if tried[-1] > limit:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return fit(network, *arguments)

    monkeypatch.setattr(planning, "fit", short_of_memory)
    limit = 8
    make_plan("m", member(), [files], pretrained)
    assert tried == [16, 8, 8]
    assert "m, a trial batch: out of memory with 16 pairs a batch × 1" in capsys.readouterr().err
    limit = 4
    with pytest.raises(UserError, match=r"8 pairs a batch × 2 do not fit.*gradient_checkpointing"):
        make_plan("m", member(), [files], pretrained)


def test_a_full_disk_is_found_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**10, 0, 4 * 10**9))
    refuse_full_disk([PLAN], tmp_path)
    with pytest.raises(UserError, match=r"need 5\.0 GB .* 4\.0 GB are free.*paths\.work=DIR"):
        refuse_full_disk([PLAN, replace(PLAN, member="n")], tmp_path)


def test_the_plan_is_printed_and_kept_for_the_members_that_are_due(
    tmp_path: Path, pretrained: Path, sample: Path, capsys: pytest.CaptureFixture
):
    cut_sample(sample, tmp_path / "data")
    pipeline = Pipeline(load_config("tiny", settings(tmp_path, pretrained)))
    pipeline.train_some("cross-pgd", 0)
    pipeline.run("train")
    log = capsys.readouterr().err
    assert "── training takes about" in log and "parameters" in log
    folds = {name: plan["folds"] for name, plan in read_json(pipeline.layout.plan_file).items()}
    count = pipeline.config.split.folds
    assert folds == {"siamese-fgm": count, "cross-pgd": count - 1}
    pipeline.run("train")
    assert "training takes" not in capsys.readouterr().err
