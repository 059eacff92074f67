"""The short table at the end of a run."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..data.audit import Audit, audit
from ..data.pairs import read_pairs
from ..files import read_json
from ..layout import Layout
from .phrases import COLUMNS, notes, table_rows


def print_run(layout: Layout, submissions: Sequence[Path]) -> None:
    """The table of scores of a finished run, and where its results are."""
    Console().print(console_summary(read_json(layout.results / "metrics.json")))
    print(f"report:     {layout.results / 'report.html'}")
    if submissions:
        print(f"submission: {submissions[-1]}")
    else:
        print("submission: none, because there is no test file. Put test.csv beside train.csv and")
        print("            run the same command: it is predicted without training again.")


def print_audit(train: Path, evaluation: Path, as_json: bool) -> None:
    """What of the pair file `evaluation` a training file has, as a table or as JSON."""
    found = audit(*(read_pairs(path, labelled=False).frame for path in (train, evaluation)))
    if as_json:
        print(json.dumps(found.as_dict(), ensure_ascii=False, indent=2))
    else:
        Console().print(audit_table(found))


def console_summary(metrics: Mapping[str, Any]) -> Table:
    """Members and ensembles with their accuracies and 95 % intervals; the notes as caption.

    `metrics` is the content of metrics.json. Names are shown as they are, never as markup.
    """
    table = Table(
        title=Text(f"Accuracy, profile {metrics['profile']} (95 % intervals)"),
        caption=Text("\n".join(notes(metrics))),
    )
    for column in COLUMNS:
        if column.console:
            table.add_column(column.title, justify="right" if column.number else "left")
    for row, cells in enumerate(table_rows(metrics)):
        if row == len(metrics["members"]):
            table.add_section()
        shown = [Text(cell) for cell, column in zip(cells, COLUMNS, strict=True) if column.console]
        table.add_row(*shown, style="bold" if row >= len(metrics["members"]) else None)
    return table


def audit_table(audit: Audit) -> Table:
    """The leak audit of two files, counts with their shares; the verdict as caption."""
    table = Table(title="Leak audit", caption=Text(audit.verdict))
    table.add_column("of the evaluation file")
    table.add_column("count", justify="right")
    table.add_column("share", justify="right")
    rows = [
        ("pairs", audit.pairs, None),
        ("pairs that stand in training", audit.exact_pairs, audit.share(audit.exact_pairs)),
        ("pairs with both questions in training", audit.both_seen, audit.share(audit.both_seen)),
        ("pairs with any question in training", audit.any_seen, audit.share(audit.any_seen)),
        ("pairs with two new questions", audit.new_pairs, audit.share(audit.new_pairs)),
        ("questions", audit.questions, None),
        ("questions that stand in training", audit.shared_questions, None),
        ("questions that do so in another spelling", audit.respelled_questions, None),
        ("components that cross both files", audit.crossing_components, None),
        ("pairs with contradictory labels", audit.contradictory_labels, None),
    ]
    for name, count, share in rows:
        table.add_row(name, f"{count:,}", "" if share is None else f"{share:.2%}")
    return table
