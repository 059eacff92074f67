"""The numbers as tables for a terminal; which ones, and how, says benchmark.md.j2."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from rich.markdown import Markdown

from .turns import OURS, THEIRS, Spread


def tables(results: Mapping[str, Any]) -> Markdown:
    """What `measure` returned, the comparison first."""
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"spread": spread_text, "share": share_text}
    template = Path(__file__).with_name("benchmark.md.j2").read_text(encoding="utf-8")
    return Markdown(environment.from_string(template).render(results, ours=OURS, theirs=THEIRS))


def spread_text(values: Spread, digits: int = 2, unit: float = 1) -> str:
    """`median (low–high)`, in units of `unit`."""
    median, low, high = (f"{values[k] / unit:,.{digits}f}" for k in ("median", "low", "high"))
    return f"{median} ({low}–{high})"


def share_text(values: Spread) -> str:
    """`median (low–high) %`."""
    return spread_text(values, 0, 0.01) + " %"
