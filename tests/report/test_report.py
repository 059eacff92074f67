"""What people read at the end of a run: figures, the page, the table on the console."""

import copy
import re
from collections.abc import Callable
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from src.report.console import console_summary
from src.report.figures import (
    ENGLISH,
    STYLE,
    accuracy_bars,
    reliability_diagram,
    threshold_curve,
    training_curves,
)
from src.report.page import write_report
from src.report.phrases import score

LABELS = np.arange(200) % 2
LOGITS = np.random.default_rng(0).normal(0, 1, 200) + 2.0 * LABELS - 1
HISTORY = [
    {"epoch": 1, "train_loss": 0.6, "valid_loss": 0.5, "valid_accuracy": 0.8},
    {"epoch": 2, "train_loss": 0.4, "valid_loss": 0.45, "valid_accuracy": 0.85},
]
NAMES = [*ENGLISH, "其他", ""]
FIGURES: dict[str, Callable[[Path], None]] = {
    "threshold": lambda target: threshold_curve(LABELS, LOGITS, 0.1, target),
    "reliability": lambda target: reliability_diagram(LABELS, 1 / (1 + np.exp(-LOGITS)), target),
    "categories": lambda target: accuracy_bars(
        NAMES, [0.9] * 12, [(0.85, 0.95)] * 11 + [None], "Per category", target
    ),
    "training": lambda target: training_curves(
        {"siamese/0": HISTORY, "siamese/1": HISTORY, "cross/0": HISTORY[:1]}, target
    ),
}
OTHER_NUMBERS: dict[str, Callable[[Path], None]] = {
    "threshold": lambda target: threshold_curve(LABELS, LOGITS, 0.9, target),
    "reliability": lambda target: reliability_diagram(LABELS, [0.6] * 200, target),
    "categories": lambda target: accuracy_bars(
        NAMES, [0.9] * 12, [(0.8, 0.95)] * 11 + [None], "Per category", target
    ),
    "training": lambda target: training_curves(
        {"siamese/0": HISTORY, "siamese/1": HISTORY[:1], "cross/0": HISTORY[:1]}, target
    ),
}


def member(cv: float, dev: float | None, weight: float) -> dict[str, Any]:
    return {
        "architecture": "siamese",
        "encoder": "e5-small-zh",
        "loaded": {"weights": {"model.safetensors": "ef" * 32}, "commit": "12" * 20},
        "cv_accuracy": cv,
        "cv_interval": [cv - 0.01, cv + 0.01],
        "dev_accuracy": dev,
        "dev_interval": None if dev is None else [dev - 0.02, dev + 0.02],
        "dev_accuracy_new_questions": None if dev is None else dev - 0.005,
        "dev_interval_new_questions": None if dev is None else [dev - 0.025, dev + 0.015],
        "weight": weight,
        "learned_nothing": None,
    }


@pytest.fixture
def metrics() -> dict[str, Any]:
    ensemble = member(0.931, 0.936, 1.0)
    for key in ("architecture", "encoder", "weight", "learned_nothing"):
        del ensemble[key]
    return {
        "profile": "small",
        "data": {
            "train": {"sha256": "ab" * 32, "pairs": 8747},
            "dev": {"sha256": "cd" * 32, "pairs": 2002},
        },
        "audit": {"verdict": "1 of 2,002 dev pairs stands in train", "exact_pairs": 1},
        "members": {"siamese-fgm": member(0.921, 0.925, 0.61), "plain": member(0.9, 0.91, 0.39)},
        "ensemble": ensemble | {"threshold": 0.2},
        "in_groups": ensemble | {"cv_accuracy": 0.972},
        "dev_under_damage": [{"damage": "as <it> is", "pair_by_pair": 0.936, "in_groups": 0.975}],
        "choice": {"way": "groups", "why": "99 % of the pairs"},
        "both_labels": [],
        "seconds": {"prepare": 1.5, "train": 1200.0},
        "peak_memory_gb": 3.2,
        "plan": {},
    }


@pytest.fixture
def metrics_without_dev(metrics: dict[str, Any]) -> dict[str, Any]:
    without = copy.deepcopy(metrics)
    del without["data"]["dev"]
    without["audit"] = None
    without["dev_under_damage"], without["choice"] = [], None
    for scores in [*without["members"].values(), without["ensemble"], without["in_groups"]]:
        for key in [key for key in scores if key.startswith("dev_")]:
            scores[key] = None
    return without


MISTAKES = pd.DataFrame(
    {
        "query1": ["<script>alert(1)</script>", "肺炎会传染吗？"],
        "query2": ['" onload="alert(2)', "得了肺炎 & 发烧怎么办"],
        "label": [0, 1],
        "probability": [0.9871, 0.0042],
    }
)


class Page(HTMLParser):
    """Tags, attributes and text of a page, as a browser would see them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def printed(metrics: dict[str, Any]) -> str:
    console = Console(file=StringIO(), width=140)
    console.print(console_summary(metrics))
    return console.file.getvalue()  # type: ignore[attr-defined]


# --- figures -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.filterwarnings("error")  # matplotlib warns of characters that it cannot draw
def test_figure_depends_on_its_numbers_only(tmp_path: Path, name: str) -> None:
    first, second, other = tmp_path / "a.svg", tmp_path / "b.svg", tmp_path / "c.svg"
    settings = [matplotlib.rcParams[key] for key in STYLE]
    FIGURES[name](first)
    FIGURES[name](second)
    OTHER_NUMBERS[name](other)
    assert ElementTree.parse(first).getroot().tag.endswith("svg")
    assert first.read_bytes() == second.read_bytes() != other.read_bytes()
    assert sorted(tmp_path.iterdir()) == [first, second, other]
    assert [matplotlib.rcParams[key] for key in STYLE] == settings


def test_png_drawn_twice_is_the_same_file(tmp_path: Path) -> None:
    first, second = tmp_path / "a.png", tmp_path / "b.png"
    FIGURES["categories"](first)
    FIGURES["categories"](second)
    assert first.read_bytes().startswith(b"\x89PNG")
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.filterwarnings("error")
def test_figures_of_degenerate_runs(tmp_path: Path) -> None:
    threshold_curve([1, 1], [2.0, 2.0], -9.0, tmp_path / "t.svg")
    reliability_diagram([1, 1], [1.0, 1.0], tmp_path / "r.svg")
    accuracy_bars(["fold 0"], [1.0], [(1.0, 1.0)], "One fold", tmp_path / "b.svg")
    training_curves({"tiny": HISTORY[:1]}, tmp_path / "h.svg")


def test_failed_figure_leaves_the_previous_one(tmp_path: Path) -> None:
    target = tmp_path / "figure.svg"
    FIGURES["training"](target)
    before = target.read_bytes()
    with pytest.raises(ValueError):
        threshold_curve([0, -1], [1.0, 2.0], 0.0, target)
    assert target.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["figure.svg"]


# --- the page ------------------------------------------------------------------------------


def test_page_shows_scores_facts_and_mistakes(tmp_path: Path, metrics: dict[str, Any]) -> None:
    target = tmp_path / "report.html"
    write_report(metrics, {}, MISTAKES, target)
    text = re.sub(r"\s+", " ", Page(target.read_text(encoding="utf-8")).text)
    for expected in (
        "93.10 % (92.10–94.10)",
        "93.60 % (91.60–95.60)",
        "93.10 % (91.10–95.10)",  # dev on new questions
        "92.10 % (91.10–93.10)",
        "1 of 2,002 dev pairs stands in train",
        "siamese-fgm",
        "0.61",
        "8,747 pairs, sha256 " + "ab" * 32,
        "audit: exact pairs1",  # two cells of a table
        "logit 0.2000, probability 0.5498",
        "1,200.0 s",
        "3.20 GB",
        "肺炎会传染吗？",
        "得了肺炎 & 发烧怎么办",
        "0.987",
        "0.004",
    ):
        assert expected in text, expected


def test_page_escapes_the_questions(tmp_path: Path, metrics: dict[str, Any]) -> None:
    metrics["members"]["<img src=x onerror=alert(3)>"] = metrics["members"]["plain"]
    metrics["audit"]["verdict"] = "<b>clean</b>"
    write_report(metrics, {}, MISTAKES, tmp_path / "report.html")
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert not {"script", "img", "b"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in page.text
    assert "<b>clean</b>" in page.text


def test_page_holds_its_figures_and_asks_for_nothing_outside(
    tmp_path: Path, metrics: dict[str, Any]
) -> None:
    FIGURES["threshold"](tmp_path / "threshold.svg")
    FIGURES["training"](tmp_path / "training.png")
    figures = {
        'Threshold "tuned"': tmp_path / "threshold.svg",
        "Training": tmp_path / "training.png",
    }
    target = tmp_path / "report.html"
    write_report(metrics, figures, MISTAKES, target)
    html = target.read_text(encoding="utf-8")
    page = Page(html)
    sources = [value for name, value in page.attributes if name in {"src", "href"}]
    assert [source.partition(",")[0] for source in sources] == [
        "data:image/svg+xml;base64",
        "data:image/png;base64",
    ]
    assert 'Threshold "tuned"' in dict.fromkeys(v for n, v in page.attributes if n == "alt")
    assert "http:" not in html and "https:" not in html and "@import" not in html
    write_report(metrics, figures, MISTAKES, tmp_path / "again.html")
    assert (tmp_path / "again.html").read_bytes() == target.read_bytes()


def test_page_without_dev_and_without_mistakes(
    tmp_path: Path, metrics_without_dev: dict[str, Any]
) -> None:
    target = tmp_path / "report.html"
    metrics_without_dev["data"]["test"] = None
    write_report(metrics_without_dev, {}, MISTAKES.iloc[:0], target)
    text = Page(target.read_text(encoding="utf-8")).text
    assert "not audited: there is no labelled dev file" in text
    assert "There are none." in text
    assert "None" not in text and "nan" not in text
    assert "93.10 % (92.10–94.10)" in text


def test_missing_figure_leaves_the_previous_page(tmp_path: Path, metrics: dict[str, Any]) -> None:
    target = tmp_path / "report.html"
    write_report(metrics, {}, MISTAKES, target)
    before = target.read_bytes()
    with pytest.raises(FileNotFoundError):
        write_report(metrics, {"gone": tmp_path / "gone.svg"}, MISTAKES, target)
    assert target.read_bytes() == before


# --- the console ---------------------------------------------------------------------------


def test_console_summary_lists_members_then_ensemble(metrics: dict[str, Any]) -> None:
    text = printed(metrics)
    lines = {line.split("│")[1].strip(): line for line in text.splitlines() if "│" in line}
    assert list(lines) == ["siamese-fgm", "plain", "ensemble", "ensemble, in groups"]
    cells = [cell.strip() for cell in lines["siamese-fgm"].split("│")[2:6]]
    assert cells[:2] == ["0.61", "92.10 % (91.10–93.10)"]
    assert cells[2:] == ["92.50 % (90.50–94.50)", "92.00 % (90.00–94.00)"]
    assert "93.60 % (91.60–95.60)" in lines["ensemble"]
    assert "97.20 %" in lines["ensemble, in groups"]
    assert "does not carry over to questions in the wild" in " ".join(text.split())
    assert "decided as groups (99 % of the pairs)" in " ".join(text.split())
    assert "1 of 2,002 dev pairs stands in train" in text
    assert "profile small" in text


def test_what_has_failed_is_said(metrics: dict[str, Any]) -> None:
    metrics["members"]["plain"]["learned_nothing"] = "over always answering 'different' on fold 1"
    said = " ".join(printed(metrics).split())
    assert "FAILED: plain learned nothing over always answering 'different' on fold 1" in said
    assert "its weight is 0" in said and "do not use" not in said
    metrics["members"]["siamese-fgm"]["learned_nothing"] = "over always answering 'different'"
    assert "do not use the submission" in " ".join(printed(metrics).split())


def test_a_dev_of_one_pair_has_no_interval(metrics: dict[str, Any]) -> None:
    metrics["data"]["dev"]["pairs"] = 1
    assert "fewer than 30 pairs" in " ".join(printed(metrics).split())


def test_pairs_with_both_labels_are_listed(tmp_path: Path, metrics: dict[str, Any]) -> None:
    pair = {"query1": "<b>甲</b>", "query2": "乙", "same": "3, 5", "different": "9"}
    metrics["both_labels"] = [pair]
    write_report(metrics, {}, MISTAKES, tmp_path / "report.html")
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "b" not in page.tags and "<b>甲</b>" in page.text and "id 3, 5" in page.text
    assert "1 pair(s) of train stand there" in " ".join(printed(metrics).split())


def test_console_summary_without_dev(metrics_without_dev: dict[str, Any]) -> None:
    text = printed(metrics_without_dev)
    line = next(line for line in text.splitlines() if "ensemble" in line)
    cells = [cell.strip() for cell in line.split("│")[3:6]]
    assert cells == ["93.10 % (92.10–94.10)", "–", "–"]
    assert "not audited" in text and "None" not in text


def test_console_summary_shows_names_as_they_are(metrics: dict[str, Any]) -> None:
    metrics["members"]["[red]x[/nope]"] = metrics["members"]["plain"]
    assert "[red]x[/nope]" in printed(metrics)


@pytest.mark.parametrize(
    ("value", "interval", "expected"),
    [
        (None, None, "–"),
        (0.93456, None, "93.46 %"),
        (1, [0.9876, 1], "100.00 % (98.76–100.00)"),
    ],
)
def test_score(value: float | None, interval: list[float] | None, expected: str) -> None:
    assert score(value, interval) == expected
