"""The figures of a run, drawn with matplotlib's object interface (no pyplot, no global state).

Every function writes one file; the suffix of `target` (.svg or .png) chooses the format. The
same input gives the same bytes on the same machine: no date, fixed identifiers in the SVG.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.ft2font import FT2Font
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import ArrayLike

from ..files import atomic_path
from .phrases import score
from .scores import accuracy_by_threshold, calibration_bins, expected_calibration_error

# The ten diseases of the competition, for machines without a Chinese font.
ENGLISH = {
    "上呼吸道感染": "upper respiratory infection",
    "咳血": "coughing blood",
    "哮喘": "asthma",
    "感冒": "common cold",
    "支原体肺炎": "mycoplasma pneumonia",
    "支气管炎": "bronchitis",
    "肺气肿": "emphysema",
    "肺炎": "pneumonia",
    "肺结核": "tuberculosis",
    "胸膜炎": "pleurisy",
}
CHINESE_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Noto Sans CJK JP",  # the name by which matplotlib knows the Noto collection file
    "Source Han Sans SC",
    "Source Han Sans CN",
    "PingFang SC",
    "PingFang HK",
    "Hiragino Sans GB",
    "Heiti SC",
    "Microsoft YaHei",
    "SimHei",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "Arial Unicode MS",
)
LATIN_FONT = "DejaVu Sans"  # comes with matplotlib
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#666666"
PALETTE = (BLUE, ORANGE, "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#000000")  # Okabe, Ito 2008
PER_CENT = FuncFormatter(lambda value, _: f"{100 * value:g} %")  # as many decimals as needed
STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "figure.constrained_layout.use": True,
    "figure.dpi": 120,
    "font.size": 10,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "savefig.dpi": 120,
    "svg.fonttype": "path",  # glyphs as outlines: the picture needs no font where it is read
    "svg.hashsalt": "similar-questions",
    "xtick.color": GREY,
    "ytick.color": GREY,
}


def _styled(draw: Callable[..., None]) -> Callable[..., None]:
    """Run `draw` under this file's style and leave matplotlib's settings as they were."""

    @wraps(draw)
    def styled(*arguments: Any, **named: Any) -> None:
        fonts = [LATIN_FONT, _chinese_font()]
        family = {"font.family": [font for font in fonts if font]}
        with matplotlib.rc_context(STYLE | family):
            draw(*arguments, **named)

    return styled


@_styled
def threshold_curve(labels: ArrayLike, logits: ArrayLike, threshold: float, target: Path) -> None:
    """Accuracy against the decision threshold (a logit), with the tuned threshold marked.

    A flat top says that the exact threshold does not matter; a tuned threshold on a narrow
    spike would be luck.
    """
    thresholds, accuracies = accuracy_by_threshold(labels, logits)
    low, high = np.quantile(thresholds[1:], [0.02, 0.98])
    low, high = min(low, threshold, 0.0) - 0.25, max(high, threshold, 0.0) + 0.25
    first, chosen, last = np.searchsorted(thresholds, [low, threshold, high], "right") - 1
    # Only what is seen, from edge to edge: the first threshold is -inf.
    starts = np.concatenate([[low], thresholds[first + 1 : last + 1], [high]])
    steps = np.append(accuracies[first : last + 1], accuracies[last])

    figure = Figure(figsize=(6.4, 3.8))
    axes = figure.add_subplot()
    axes.step(starts, steps, where="post", color=BLUE)
    axes.axvline(threshold, color=ORANGE, linestyle="--", linewidth=1.2)
    axes.plot(threshold, accuracies[chosen], "o", color=ORANGE)
    axes.set_xlim(low, high)
    axes.set_ylim(*_room(steps))
    axes.yaxis.set_major_formatter(PER_CENT)
    axes.set_xlabel("threshold (logit)")
    axes.set_ylabel("accuracy")
    axes.set_title(f"Threshold {threshold:.3f}: accuracy {score(accuracies[chosen])}", loc="left")
    _save(figure, target)


@_styled
def reliability_diagram(
    labels: ArrayLike, probabilities: ArrayLike, target: Path, bins: int = 10
) -> None:
    """Positive rate against probability, with the number of pairs per bin underneath.

    Points on the diagonal: a score of 0.8 is right in 80 % of the cases (DeGroot and Fienberg
    1983, The comparison and evaluation of forecasters, The Statistician 32).
    """
    points = calibration_bins(labels, probabilities, bins)
    error = expected_calibration_error(labels, probabilities, bins)

    figure = Figure(figsize=(5.2, 5.4))
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    upper.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1.2)
    upper.plot(
        [point.mean_probability for point in points],
        [point.positive_rate for point in points],
        "o-",
        color=BLUE,
    )
    upper.set_ylim(-0.03, 1.03)
    upper.set_ylabel("share that is the same question")
    upper.set_title(f"Expected calibration error {score(error)}", loc="left")
    lower.bar(
        [point.low for point in points],
        [point.pairs for point in points],
        width=[0.96 * (point.high - point.low) for point in points],
        align="edge",
        color=BLUE,
    )
    lower.set_xlim(-0.03, 1.03)
    lower.set_ylabel("pairs")
    lower.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    lower.set_xlabel("probability of the same question")
    figure.align_ylabels()
    _save(figure, target)


@_styled
def accuracy_bars(
    names: Sequence[str],
    values: Sequence[float],
    intervals: Sequence[tuple[float, float] | None],
    title: str,
    target: Path,
) -> None:
    """Accuracies with their interval bars, one row a name, top to bottom.

    Points instead of columns from zero: between 85 and 100 % columns would all look alike.
    Disease names are written in English where no installed font has their characters.
    """
    rows = range(len(names))
    reach = list(values) + [end for interval in intervals if interval for end in interval]

    figure = Figure(figsize=(6.4, 0.9 + 0.36 * len(names)))
    axes = figure.add_subplot()
    for row, value, interval in zip(rows, values, intervals, strict=True):
        if interval is not None:
            axes.plot(interval, (row, row), "|-", color=BLUE, markersize=8)
    axes.plot(values, rows, "o", color=BLUE, markersize=6, clip_on=False)
    for row, value in zip(rows, values, strict=True):
        axes.annotate(
            score(value),
            (1, row),
            xycoords=("axes fraction", "data"),
            xytext=(8, 0),
            textcoords="offset points",
            verticalalignment="center",
        )
    axes.set_yticks(rows, [_legible(name) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(*_room(reach))
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0, labelcolor="black")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(PER_CENT)
    axes.set_title(title, loc="left")
    _save(figure, target)


@_styled
def training_curves(histories: Mapping[str, Sequence[Mapping[str, float]]], target: Path) -> None:
    """Loss and accuracy per epoch, one line a history.

    `histories` maps "member" or "member/fold" to rows with the keys epoch, train_loss,
    valid_loss and valid_accuracy. What stands before the last "/" chooses the colour, so the
    folds of a member look alike.
    """
    members = list(dict.fromkeys(_member(name) for name in histories))
    colours = {member: PALETTE[i % len(PALETTE)] for i, member in enumerate(members)}

    figure = Figure(figsize=(8.4, 3.8))
    losses, accuracies = figure.subplots(1, 2)
    for name, rows in histories.items():
        colour = colours[_member(name)]
        epochs = [row["epoch"] for row in rows]

        def line(axes: Axes, key: str, **style: Any) -> None:
            axes.plot(epochs, [row[key] for row in rows], color=colour, markersize=3.5, **style)

        line(losses, "train_loss", marker="o", linestyle=":", linewidth=1.0)
        line(losses, "valid_loss", marker="o")
        line(accuracies, "valid_accuracy", marker="o")
    for axes in (losses, accuracies):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axes.set_xlabel("epoch")
    losses.set_title("Loss: training dotted, validation solid", loc="left")
    losses.set_ylim(bottom=0)
    accuracies.set_title("Validation accuracy", loc="left")
    accuracies.yaxis.set_major_formatter(PER_CENT)
    figure.legend(
        handles=[Line2D([], [], color=colours[m], label=_legible(m)) for m in members],
        loc="outside lower center",
        ncols=min(len(members), 4) or 1,
    )
    _save(figure, target)


def _member(name: str) -> str:
    """The member of a history named "member/fold"."""
    return name.rpartition("/")[0] or name


def _room(values: ArrayLike) -> tuple[float, float]:
    """Axis limits around accuracies: some air on both sides, but hardly beyond 100 %."""
    low, high = float(np.min(values)), float(np.max(values))
    margin = max(0.06 * (high - low), 0.01)
    return low - margin, min(high + margin, 1 + margin / 4)


def _legible(name: str) -> str:
    """`name` as the fonts at hand can draw it."""
    if not name:
        return "(none)"  # a file without categories
    if name.isascii() or _chinese_font():
        return name
    return ENGLISH.get(name) or name.encode("unicode_escape").decode("ascii")


@cache
def _chinese_font() -> str | None:
    """The first installed font of CHINESE_FONTS that has every character of the diseases."""
    needed = {ord(character) for name in ENGLISH for character in name}
    installed = {font.name: font.fname for font in fontManager.ttflist}
    for family in CHINESE_FONTS:
        if family in installed and needed <= FT2Font(installed[family]).get_charmap().keys():
            return family
    return None


def _save(figure: Figure, target: Path) -> None:
    """Write `figure` atomically, without the date that would make each file differ."""
    with atomic_path(target) as temporary:
        figure.savefig(temporary, metadata={"Date": None} if target.suffix == ".svg" else None)
