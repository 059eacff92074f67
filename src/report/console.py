"""The short table at the end of a run."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from .wording import ENSEMBLE, score_rows, verdict


def console_summary(metrics: Mapping[str, Any]) -> Table:
    """Members and ensemble with their accuracies and 95 % intervals; the audit as caption.

    `metrics` is the content of metrics.json. Names are shown as they are, never as markup.
    """
    table = Table(
        title=Text(f"Accuracy, profile {metrics['profile']} (95 % intervals)"),
        caption=Text(f"Leak audit: {verdict(metrics)}"),
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
