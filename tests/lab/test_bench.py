"""The benchmark: it runs, its arithmetic is right, and its contenders do the same work."""

import io
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from click.testing import CliRunner
from rich.console import Console
from tiny_run import cut_sample
from torch import nn

from src.__main__ import main
from src.config import load_config
from src.data.graph import wording
from src.data.pairs import read_pairs
from src.errors import UserError
from src.lab.benchmark import hardware, training_memory
from src.lab.benchmark.benchmark_tables import tables
from src.lab.benchmark.growth import FACTORS, longer, uncut
from src.lab.benchmark.hardware import flop_per_token, product_peak
from src.lab.benchmark.measure import PARTS, measure
from src.lab.benchmark.ours import Ours
from src.lab.benchmark.scale import Scale
from src.lab.benchmark.shortcut_accuracy import split, without_shortcuts
from src.lab.benchmark.theirs import THEIR, TheirCross
from src.lab.benchmark.training_memory import peak_gb
from src.lab.benchmark.turns import (
    alternate,
    counted_tokens,
    in_processes,
    spread,
    update_times,
    window,
)
from src.models.dropout import Dropout


@pytest.fixture(scope="module")
def frame(sample: Path) -> pd.DataFrame:
    return read_pairs(sample / "train.csv", labelled=True).frame


@pytest.fixture
def small_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine's peak, measured in no time and too low."""
    monkeypatch.setattr(hardware, "_SECONDS", 0.01)
    monkeypatch.setattr(hardware, "_SHAPES", ((256, 256, 256),))


def test_contenders_take_turns_and_the_first_round_does_not_count() -> None:
    calls = []

    def contender(name: str):
        return lambda number: calls.append((name, number)) or len(calls)

    results = alternate({"A": contender("A"), "B": contender("B")}, 2, "test")
    assert calls == [("A", 0), ("B", 0)] + [("A", 0), ("B", 0), ("A", 1), ("B", 1)]
    assert results == {"A": [3, 5], "B": [4, 6]}


def test_spread_is_median_and_range() -> None:
    assert spread([5.0, 1.0, 2.0]) == {"median": 2.0, "low": 1.0, "high": 5.0}


def test_windows_follow_one_another_and_start_again(frame: pd.DataFrame) -> None:
    few = frame[:10]
    ids = [window(few, 4, number)["id"].tolist() for number in range(3)]
    assert sum(ids, []) == few["id"].tolist() + few["id"].tolist()[:2]


def test_tokens_of_one_mode_are_counted() -> None:
    layer = nn.Linear(3, 3)
    with counted_tokens(layer, lambda arguments: len(arguments[0]), training=True) as tokens:
        layer.train()(torch.ones(5, 3))
        layer.eval()(torch.ones(7, 3))
    layer.train()(torch.ones(9, 3))
    assert tokens == [5]


def test_updates_of_any_optimizer_are_noted_in_order() -> None:
    weight = nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    with update_times() as times:
        for kind in (torch.optim.AdamW, torch.optim.SGD):
            kind([weight], lr=0.1).step()
    assert len(times) == 2 and times[0] < times[1]


def test_operations_of_a_layer_are_two_a_weight_and_thrice_that_in_training() -> None:
    encoder = nn.Sequential(nn.Embedding(50, 4), nn.Linear(4, 6), nn.LayerNorm(6))
    assert flop_per_token(encoder, training=False) == 2 * 24
    assert flop_per_token(encoder, training=True) == 6 * 24


def test_the_peak_is_above_what_one_product_reaches() -> None:
    """At least 1 GFLOP a second, on any machine that can run this."""
    assert product_peak("fp32", torch.device("cpu")) > 1e9


def test_without_shortcuts_the_answers_are_the_same(frame: pd.DataFrame, pretrained: Path) -> None:
    own = Ours.load("siamese", "tiny", frame, pretrained)
    pairs = own.read(frame[:40])
    packed = own.model.predict(pairs)
    without_shortcuts(own.model.encoder)
    assert not any(isinstance(module, Dropout) for module in own.model.encoder.modules())
    np.testing.assert_allclose(own.model.predict(pairs), packed, atol=1e-5)


def test_the_epoch_is_chosen_on_other_questions(frame: pd.DataFrame) -> None:
    parts = split(frame)
    assert sum(map(len, parts)) == len(frame) and 100 < len(parts[1]) < len(parts[0])
    training, valid = ({wording(q) for q in [*p["query1"], *p["query2"]]} for p in parts)
    assert not training & valid


def test_nothing_is_cut_where_cost_grows_with_length(frame: pd.DataFrame, pretrained: Path) -> None:
    """The kept pairs read factor times as many tokens, the two special ones aside."""
    own = Ours.load("siamese", "tiny", frame, pretrained)
    short = uncut(frame, own.tokenizer, own.member.max_length)
    assert 0 < len(short) < len(frame)
    once = own.predict(short, "fp32").tokens
    questions = len({*short["query1"], *short["query2"]})
    for factor in FACTORS:
        tokens = own.predict(longer(short, factor), "fp32").tokens
        assert tokens - 2 * questions == pytest.approx(factor * (once - 2 * questions), rel=0.1)
    with pytest.raises(UserError, match="fits into 8 tokens"):
        uncut(frame, own.tokenizer, 8)


def test_memory_is_that_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    assert peak_gb() > 0.1  # Python, torch and the tests
    gpu = SimpleNamespace(device=torch.device("cuda"))
    monkeypatch.setattr("src.lab.benchmark.training_memory.PartialState", lambda: gpu)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 3_000_000)
    assert peak_gb() == 0.003


def test_processes_are_fresh_ones() -> None:
    seen = in_processes(os.getpid, [(), (), ()])
    assert len({os.getpid(), *seen}) == 4


@pytest.mark.usefixtures("small_peak")
def test_a_part_that_fails_leaves_what_was_measured(
    pretrained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setitem(PARTS, "speed", lambda _: {"measured": 1})
    monkeypatch.setitem(PARTS, "step", fails)
    (tmp_path / "bench.json").write_text("an earlier result", "utf-8")
    config = load_config("tiny", [f"paths.pretrained={pretrained}"])
    with pytest.raises(RuntimeError):
        measure(config, Scale.load("quick"), tmp_path)
    written = json.loads((tmp_path / "bench.partial.json").read_text("utf-8"))
    assert written["speed"] == {"measured": 1} and "step" not in written
    assert (tmp_path / "bench.json").read_text("utf-8") == "an earlier result"


@pytest.mark.parametrize("architecture", ["siamese", "cross"])
def test_both_libraries_do_the_same_work(
    architecture: str, frame: pd.DataFrame, pretrained: Path
) -> None:
    """The same pairs; each question once here, twice and more there; weights change."""
    rows = window(frame, 24, 0)
    own = Ours.load(architecture, "tiny", frame, pretrained)
    rival = THEIR[architecture](pretrained / "tiny")
    before = [p.detach().clone() for p in (*own.model.parameters(), *rival.loss.parameters())]
    trained = [contender.train(rows, "fp32") for contender in (own, rival)]
    after = [*own.model.parameters(), *rival.loss.parameters()]
    changed = [not torch.equal(a, b) for a, b in zip(after, before, strict=True)]
    assert np.mean(changed) > 0.9
    predicted = [contender.predict(rows, "fp32") for contender in (own, rival)]
    pairs = list(zip(rows["query1"], rows["query2"], strict=True))
    questions = {question for pair in pairs for question in pair}
    length = {q: len(own.tokenizer(q)["input_ids"]) for q in questions}
    joined = sum(len(own.tokenizer(*pair)["input_ids"]) for pair in pairs)
    if architecture == "siamese":
        each = sum(length[q] for pair in pairs for q in pair)
        assert predicted[0].tokens == trained[0].tokens == sum(length.values())
        assert predicted[1].tokens == trained[1].tokens == each
    else:
        assert [work.tokens for work in trained] == [joined, joined]
        assert [work.tokens for work in predicted] == [2 * joined, joined]
        assert isinstance(rival, TheirCross)
        assert rival.predict_both_orders(rows, "fp32")[:2] == (24, 2 * joined)
    assert all(work.pairs == 24 and work.seconds > 0 for work in trained + predicted)


@pytest.mark.usefixtures("small_peak")
def test_command_prints_json_and_writes_the_results(
    sample: Path, pretrained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def here(function: Callable, tasks: list[tuple]) -> list:
        """Not in processes of their own, which would import torch for seconds each."""
        function, tasks = pickle.loads(pickle.dumps((function, tasks)))
        return [function(*arguments) for arguments in tasks]

    monkeypatch.setattr(training_memory, "in_processes", here)
    data = cut_sample(sample, tmp_path / "data", train=160, other=40)
    scale = Scale.load("quick")
    # The stages on fewer pairs, too.
    fewer = scale.model_copy(update={"stages": (*scale.stages, f"data.dir={data}")})
    monkeypatch.setattr(Scale, "load", lambda name: {"quick": fewer}[name])
    arguments = ["bench", "--quick", "--json", f"data.dir={data}", f"paths.pretrained={pretrained}"]
    run = CliRunner().invoke(main, [*arguments, f"paths.submissions={tmp_path}"])
    assert run.exit_code == 0, run.output
    results = json.loads(run.stdout)
    assert results == json.loads((tmp_path / "bench-quick" / "bench.json").read_text("utf-8"))
    assert (tmp_path / "bench-quick" / "bench.svg").read_text("utf-8").startswith("<?xml")
    assert set(results["speed"]) == {
        f"{act} {kind}" for act in ("train", "predict") for kind in ("bi-encoder", "cross-encoder")
    }
    for found in results["speed"].values():
        for ratio in found["ratios"].values():
            assert 0 < ratio["low"] <= ratio["median"] <= ratio["high"]
    for architecture in ("siamese", "cross"):
        assert results["attacks"][architecture]["pgd"]["median"] > 1
        assert 0 < results["step"][architecture]["update_share"]["median"] < 1
    memory = results["memory_gb"]["siamese, fp32"]
    assert 0 < memory["this project"] and 0 < memory["sentence-transformers"]
    assert [row["factor"] for row in results["growth"]["pairs"]] == [1, 2, 4]
    for values in results["accuracy"]["accuracy"].values():
        assert len(values) == 3 and all(0 < value < 1 for value in values)
    tokens = [row["tokens"] for row in results["growth"]["length"]]
    assert tokens[0] < tokens[1] < tokens[2] <= 64
    pairs = [row["pairs"] for row in results["growth"]["pairs"]]
    assert pairs == [pairs[0], 2 * pairs[0], 4 * pairs[0]]
    assert all(seconds >= 0 for seconds in results["stages_s"].values())
    assert results["start_up_s"]["median"] > 0
    assert results["large"]["ratio"]["median"] > 0
    console = Console(width=200, file=io.StringIO())
    console.print(tables(results))
    for text in ("predict cross-encoder", "sentence-transformers, fp32", "FGM", "transformers Tr"):
        assert text in console.file.getvalue()
    console.print(tables(results | {"large": None, "accuracy": None}))
    for text in ("there is no CUDA GPU here", "there is no dev file"):
        assert text in console.file.getvalue()


@pytest.mark.parametrize("setting", ["training.epochs=2", "members.siamese-fgm.encoder=tiny"])
def test_settings_that_would_change_nothing_are_refused(setting: str) -> None:
    with pytest.raises(UserError, match="takes data.* and paths.* only"):
        CliRunner().invoke(main, ["bench", setting], catch_exceptions=False)


def test_the_search_benchmark_is_a_command_of_its_own(tmp_path: Path) -> None:
    """Nothing is trained here, so it says what to run first."""
    arguments = ["bench", "search", str(tmp_path / "out.json"), "--profile", "tiny"]
    with pytest.raises(UserError, match="Run first: bash run.sh --profile tiny"):
        CliRunner().invoke(main, [*arguments, f"paths.work={tmp_path}"], catch_exceptions=False)
