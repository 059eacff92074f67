"""Deliver a study: CSV, JSON, a Markdown table, a figure, and the same table on the screen."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ....data.pairs import csv_text
from ....files import write_json, write_text
from ....report.figures import accuracy_bars
from .study_table import Row

FILES = ("results.csv", "differences.csv", "results.json", "table.md", "figure.svg")

# Facts that the table shows, where a study reports them; CSV and JSON hold all.
_FACTS = {
    "parameters": ("parameters", lambda value: f"{value / 1e6:.2f} M"),
    "trained_parameters": ("trained", lambda value: f"{value / 1e6:.2f} M"),
    "training_pairs": ("pairs", lambda value: f"{value:,.0f}"),
    "train_seconds": ("seconds", lambda value: f"{value:.1f}"),
    "questions_per_second": ("questions/s", lambda value: f"{value:,.0f}"),
    "cosine_auc": ("AUC", lambda value: f"{value:.4f}"),
    "duplicate_first": ("duplicate first", lambda value: f"{100 * value:.1f} %"),
    "cost": ("cost", lambda value: f"{value:.2f} ×"),
}


@dataclass(frozen=True)
class Report:
    """A finished study.

    Attributes:
        differences: every arm against every other.
        caption: what was cut, and how to read the table.
        details: what JSON holds beyond the rows.
    """

    title: str
    rows: Sequence[Row]
    differences: Sequence[dict[str, Any]]
    caption: Sequence[str]
    details: dict[str, Any]


def publish(report: Report, folder: Path) -> None:
    """Write all of `FILES` into `folder`."""
    flat = [row.flat() for row in report.rows]
    _write_csv(folder / "results.csv", flat)
    _write_csv(folder / "differences.csv", report.differences)
    write_json(
        folder / "results.json",
        {"title": report.title, "caption": list(report.caption), **report.details, "rows": flat},
    )
    write_text(folder / "table.md", _markdown(report))
    accuracy_bars(
        [_label(report, row) for row in report.rows],
        [row.score.accuracy for row in report.rows],
        [(row.score.low, row.score.high) for row in report.rows],
        report.title,
        folder / "figure.svg",
    )


def _write_csv(path: Path, records: Sequence[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for record in records for name in record))
    write_text(
        path, csv_text([names, *([record.get(name, "") for name in names] for record in records)])
    )


def print_table(report: Report) -> None:
    """Show the table, the audit's verdicts and the caption; no number is ever cut short."""
    console, table = Console(), _console_table(report)
    # Where the terminal is narrower than the table, its lines are broken by the terminal.
    needed = console.measure(table, options=console.options.update(max_width=1000)).maximum
    Console(width=max(console.width, needed)).print(table)
    for note in _notes(report):
        print(note)


def _console_table(report: Report) -> Table:
    table = Table(title=Text(report.title))
    header, *lines = _cells(report)
    for index, name in enumerate(header):
        table.add_column(Text(name), justify="left" if index < 2 else "right", no_wrap=True)
    column = report.rows[0].column
    for row, cells in zip(report.rows, lines, strict=True):
        if row.column != column:
            table.add_section()
            column = row.column
        table.add_row(*map(Text, cells))
    return table


def _label(report: Report, row: Row) -> str:
    """The row's name in the figure: only what tells it from the others."""
    parts = [row.arm]
    if len({other.column for other in report.rows}) > 1:
        parts.insert(0, row.column)
    if len({other.score_name for other in report.rows}) > 1:
        parts.append(row.score_name)
    return ", ".join(parts)


def _cells(report: Report) -> list[list[str]]:
    """Header and lines; columns that say nothing in this study are left out."""
    rows = report.rows
    facts = [name for name in _FACTS if any(name in row.facts for row in rows)]
    verdicts = _verdicts(report)
    header = ["column", "arm", "score", "accuracy (95 %)", "± seeds", "difference (95 %)", "p", "q"]
    header += [_FACTS[name][0] for name in facts] + ["audit"]
    lines = []
    for row in rows:
        against = row.against
        line = [
            row.column,
            row.arm,
            row.score_name,
            f"{100 * row.score.accuracy:.2f} "
            f"({100 * row.score.low:.1f}–{100 * row.score.high:.1f})",
            f"{100 * row.score.spread:.2f}",
            "reference"
            if against is None
            else f"{100 * against.difference:+.2f} "
            f"({100 * against.low:+.2f} to {100 * against.high:+.2f})",
            "" if against is None else f"{against.p_value:.3f}",
            "" if row.q_value is None else f"{row.q_value:.3f}",
        ]
        line += [_FACTS[name][1](row.facts[name]) if name in row.facts else "" for name in facts]
        lines.append([*line, f"[{verdicts[row.audit]}]"])
    kept = [
        index
        for index, name in enumerate(header)
        if name not in ("column", "score") or len({line[index] for line in lines}) > 1
    ]
    return [[line[index] for index in kept] for line in (header, *lines)]


def _verdicts(report: Report) -> dict[str, int]:
    """Each verdict of the leak audit with its number in the table."""
    return {verdict: n for n, verdict in enumerate(dict.fromkeys(r.audit for r in report.rows), 1)}


def _notes(report: Report) -> list[str]:
    verdicts = [f"[{number}] leak audit: {text}" for text, number in _verdicts(report).items()]
    return [*verdicts, *report.caption]


def _markdown(report: Report) -> str:
    header, *lines = ([cell.replace("|", "\\|") for cell in line] for line in _cells(report))
    table = [
        f"**{report.title}**",
        "",
        f"| {' | '.join(header)} |",
        f"|{'---|' * len(header)}",
        *(f"| {' | '.join(line)} |" for line in lines),
        "",
        *(f"- {note}" for note in _notes(report)),
    ]
    return "\n".join(table) + "\n"
