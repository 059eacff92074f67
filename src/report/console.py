"""The short table at the end of a run."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from ..data.graph import Audit
from .phrases import ENSEMBLE, gain, score_rows, verdict


def console_summary(metrics: Mapping[str, Any]) -> Table:
    """Members and ensemble with their accuracies and 95 % intervals; the audit as caption.

    `metrics` is the content of metrics.json. Names are shown as they are, never as markup.
    """
    notes = [gain(metrics), f"Leak audit: {verdict(metrics)}"]
    table = Table(
        title=Text(f"Accuracy, profile {metrics['profile']} (95 % intervals)"),
        caption=Text("\n".join(note for note in notes if note)),
    )
    table.add_column("member")
    table.add_column("weight", justify="right")
    table.add_column("cross-validation", justify="right")
    table.add_column("dev", justify="right")
    table.add_column("dev, new questions", justify="right")
    for row in score_rows(metrics):
        if row.name == ENSEMBLE:
            table.add_section()
        cells = (row.name, row.weight, row.cv, row.dev, row.dev_new_questions)
        table.add_row(
            *(Text(cell) for cell in cells), style="bold" if row.name == ENSEMBLE else None
        )
    return table


def audit_table(audit: Audit) -> Table:
    """The leak audit of two files, counts with their shares; the verdict as caption."""
    table = Table(title="Leak audit", caption=Text(audit.verdict))
    table.add_column("of the evaluation file")
    table.add_column("count", justify="right")
    table.add_column("share", justify="right")
    rows = [
        ("pairs", audit.pairs, None),
        ("pairs that stand in training", audit.exact_pairs, audit.exact_share),
        ("pairs with both questions in training", audit.both_seen, audit.both_share),
        ("pairs with any question in training", audit.any_seen, audit.any_share),
        ("pairs with two new questions", audit.new_pairs, audit.new_share),
        ("questions", audit.questions, None),
        ("questions that stand in training", audit.shared_questions, None),
        ("questions that do so in another spelling", audit.respelled_questions, None),
        ("components that cross both files", audit.crossing_components, None),
        ("pairs with contradictory labels", audit.contradictory_labels, None),
    ]
    for name, count, share in rows:
        table.add_row(name, f"{count:,}", "" if share is None else f"{share:.2%}")
    return table
