"""How a run's scores are put into words: the same rows for the console and the page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ABSENT = "–"
ENSEMBLE = "ensemble"


@dataclass(frozen=True)
class ScoreRow:
    """One line of the table of scores, ready to print; ABSENT where there is no dev file."""

    name: str
    architecture: str
    encoder: str
    weight: str
    cv: str
    dev: str
    dev_new_questions: str


def score_rows(metrics: Mapping[str, Any]) -> list[ScoreRow]:
    """The members in their order, then the ensemble. `metrics` is the content of metrics.json."""
    rows = [
        _row(name, member, f"{member['weight']:.2f}") for name, member in metrics["members"].items()
    ]
    return [*rows, _row(ENSEMBLE, metrics["ensemble"], "")]


def score(value: float | None, interval: Sequence[float] | None = None) -> str:
    """An accuracy in [0, 1] as per cent with its interval: `93.51 % (92.40–94.55)`."""
    if value is None:
        return ABSENT
    if interval is None:
        return f"{value:.2%}".replace("%", " %")
    low, high = interval
    return f"{100 * value:.2f} % ({100 * low:.2f}–{100 * high:.2f})"


def verdict(metrics: Mapping[str, Any]) -> str:
    """The leak audit's verdict, which stands beside every score."""
    audit = metrics.get("audit")
    return audit["verdict"] if audit else "not audited: there is no labelled dev file"


def gain(metrics: Mapping[str, Any]) -> str | None:
    """How much better the ensemble is than its best member; None where it is not known."""
    found = metrics.get("gain_over_best_member")
    if not found:
        return None
    difference, low, high = (100 * x for x in (found["cv_difference"], *found["interval"]))
    return (
        f"Ensemble − {found['member']}, cross-validation: {difference:+.2f} points "
        f"(95 %: {low:+.2f} to {high:+.2f})"
    )


def _row(name: str, scores: Mapping[str, Any], weight: str) -> ScoreRow:
    return ScoreRow(
        name=name,
        architecture=scores.get("architecture", ""),
        encoder=scores.get("encoder", ""),
        weight=weight,
        cv=score(scores["cv_accuracy"], scores["cv_interval"]),
        dev=score(scores.get("dev_accuracy"), scores.get("dev_interval")),
        dev_new_questions=score(
            scores.get("dev_accuracy_new_questions"), scores.get("dev_interval_new_questions")
        ),
    )
