"""The report of a run as one HTML file that needs nothing else: no script, no network."""

import base64
import math
import mimetypes
from collections.abc import Iterator, Mapping
from numbers import Number
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pandas import DataFrame

from ..files import write_text
from .phrases import COLUMNS, notes, table_rows

TEMPLATE = "page.html.j2"


def write_report(
    metrics: Mapping[str, Any],
    figures: Mapping[str, Path],
    mistakes: DataFrame,
    target: Path,
) -> None:
    """Write the report to `target`.

    Args:
        metrics: the content of metrics.json; scores on dev may be None, and `audit` too.
        figures: caption to picture (.svg or .png), in the order of the page.
        mistakes: columns query1, query2, label, probability, in the order of the page.

    Raises:
        OSError: a figure cannot be read, or the page cannot be written.
    """
    # Everything in the page is somebody's text: it is escaped, whatever it says.
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rows = list(table_rows(metrics))
    titles = [column.title for column in COLUMNS]
    page = environment.get_template(TEMPLATE).render(
        metrics=metrics,
        columns=COLUMNS,
        rows=rows,
        ensembles=[dict(zip(titles, row, strict=True)) for row in rows[len(metrics["members"]) :]],
        notes=list(notes(metrics)),
        figures={caption: _data_address(path) for caption, path in figures.items()},
        mistakes=mistakes[["query1", "query2", "label", "probability"]].to_dict("records"),
        facts=list(_facts(metrics)),
    )
    write_text(target, page)


def _data_address(picture: Path) -> str:
    """The picture's bytes as a data: address."""
    kind = mimetypes.types_map[picture.suffix]
    return f"data:{kind};base64,{base64.b64encode(picture.read_bytes()).decode('ascii')}"


def _facts(metrics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and value of what a reader needs to repeat the run."""
    yield "profile", metrics["profile"]
    for name, file in metrics["data"].items():
        if file:
            yield f"{name} file", f"{file['pairs']:,} pairs, sha256 {file['sha256']}"
    for name, value in (metrics.get("audit") or {}).items():
        if isinstance(value, Number):
            yield f"audit: {name.replace('_', ' ')}", f"{value:,}"
    threshold = metrics["ensemble"]["threshold"]
    probability = 1 / (1 + math.exp(-threshold))
    yield "threshold", f"logit {threshold:.4f}, probability {probability:.4f}"
    for name, member in metrics["members"].items():
        yield f"weight of {name}", f"{member['weight']:.4f}"
    for name, member in metrics["members"].items():
        loaded = member["loaded"]
        hashes = ", ".join(f"{file} sha256 {digest}" for file, digest in loaded["weights"].items())
        commit = f"commit {loaded['commit']}, " if "commit" in loaded else ""
        yield f"encoder of {name}", f"{member['encoder']}: {commit}{hashes}"
    for stage, seconds in metrics["seconds"].items():
        yield f"time of {stage}", f"{seconds:,.1f} s"
    for name, plan in metrics["plan"].items():
        yield (
            f"planned for {name}",
            f"{plan['parameters'] / 1e6:,.0f} M parameters, {plan['folds']} folds × "
            f"{plan['steps']:,} steps, {plan['seconds']:,.0f} s, memory {plan['memory_gb']} GB, "
            f"disk {plan['disk_gb']} GB, {plan['precision']}",
        )
    yield "time of all stages", f"{sum(metrics['seconds'].values()) / 60:,.1f} min"
    yield "peak memory", f"{metrics['peak_memory_gb']:.2f} GB"
