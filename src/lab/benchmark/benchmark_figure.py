"""The comparison as a picture: ratios with their range, and how the cost grows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...files import atomic_path
from ...report.figures import BLUE, GREY, ORANGE, STYLE
from .turns import OURS, THEIRS


def draw(results: Mapping[str, Any], target: Path) -> None:
    """Write the picture of what `measure` returned; the suffix of `target` chooses the format."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(12, 5))
        ratios, pairs, length = figure.subplots(1, 3, gridspec_kw={"width_ratios": [1.4, 1, 1]})
        _ratios(ratios, results["speed"])
        _growth(pairs, results["growth"]["pairs"], "number of pairs")
        _growth(length, results["growth"]["length"], "length of questions")
        with atomic_path(target) as temporary:
            figure.savefig(temporary, metadata={"Date": None} if target.suffix == ".svg" else None)


def _ratios(axes: Axes, speed: Mapping[str, Any]) -> None:
    """One point a comparison; right of the line this project is faster."""
    found = {
        f"{subject}\n{name.replace(THEIRS, 'theirs')}": ratio
        for subject, measured in speed.items()
        for name, ratio in measured["ratios"].items()
    }
    rows = pd.DataFrame(found).T[::-1]
    heights = range(len(rows))
    axes.hlines(heights, rows["low"], rows["high"], color=BLUE)
    axes.plot(rows["median"], heights, "o", color=BLUE)
    axes.axvline(1.0, color=GREY, linewidth=1.0)
    axes.set_yticks(heights, rows.index, fontsize=7)
    axes.set(xlim=(0, None), xlabel=f"pairs a second, {OURS} / {THEIRS}", title="Speed")


def _growth(axes: Axes, rows: Sequence[Mapping[str, Any]], quantity: str) -> None:
    factors = [row["factor"] for row in rows]
    for library, colour in ((OURS, BLUE), (THEIRS, ORANGE)):
        seconds = pd.DataFrame([row["seconds"][library] for row in rows])
        axes.plot(factors, seconds["median"], "o-", color=colour, label=library)
        axes.fill_between(factors, seconds["low"], seconds["high"], color=colour, alpha=0.2)
    axes.set_xticks(factors, [f"{factor}×" for factor in factors])
    axes.set(ylim=(0, None), xlabel=quantity, ylabel="seconds of an epoch, bi-encoder")
    axes.set_title(f"Cost and {quantity}")
    axes.legend()
