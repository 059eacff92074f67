"""How a run's scores are put into words: the same for the console and the page.

A new column of the table of scores is a line in `COLUMNS`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ABSENT = "–"
ENSEMBLE, IN_GROUPS = "ensemble", "ensemble, in groups"
FEWEST_PAIRS = 30  # of which an interval is given: of fewer, resampling knows too little
Scores = Mapping[str, Any]  # a member's or the ensemble's entry in metrics.json


@dataclass(frozen=True)
class Column:
    """A column of the table of scores.

    Attributes:
        text: of a row's scores; ABSENT where there is nothing to show.
        number: whether it is set to the right.
        console: whether a terminal has room for it.
    """

    title: str
    text: Callable[[Scores], str]
    number: bool = True
    console: bool = True


COLUMNS = (
    Column("member", lambda row: row["name"], number=False),
    Column("architecture", lambda row: row.get("architecture", ""), number=False, console=False),
    Column("encoder", lambda row: row.get("encoder", ""), number=False, console=False),
    Column("weight", lambda row: f"{row['weight']:.2f}" if "weight" in row else ""),
    Column("cross-validation", lambda row: score(row["cv_accuracy"], row["cv_interval"])),
    Column("dev", lambda row: score(row.get("dev_accuracy"), row.get("dev_interval"))),
    Column(
        "dev, new questions",
        lambda row: score(
            row.get("dev_accuracy_new_questions"), row.get("dev_interval_new_questions")
        ),
    ),
)


def table_rows(metrics: Mapping[str, Any]) -> Iterator[list[str]]:
    """The cells of all `COLUMNS`: the members in their order, the ensemble, the ensemble in groups.

    `metrics` is the content of metrics.json.
    """
    ensembles = {ENSEMBLE: metrics["ensemble"], IN_GROUPS: metrics["in_groups"]}
    for name, scores in (metrics["members"] | ensembles).items():
        yield [column.text({"name": name, **scores}) for column in COLUMNS]


def score(value: float | None, interval: Sequence[float] | None = None) -> str:
    """An accuracy in [0, 1] as per cent with its interval: `93.51 % (92.40–94.55)`."""
    if value is None:
        return ABSENT
    if interval is None:
        return f"{value:.2%}".replace("%", " %")
    low, high = interval
    return f"{100 * value:.2f} % ({100 * low:.2f}–{100 * high:.2f})"


def notes(metrics: Mapping[str, Any]) -> Iterator[str]:
    """What has to be read with the table: the gain, groups, the data's faults, the leak audit."""
    failed = {
        n: m["learned_nothing"] for n, m in metrics["members"].items() if m["learned_nothing"]
    }
    is_hopeless = len(failed) == len(metrics["members"])
    for name, over in failed.items():
        weight = "no member did: do not use the submission" if is_hopeless else "its weight is 0"
        yield f"FAILED: {name} learned nothing {over}; {weight}"
    found = metrics.get("gain_over_best_member")
    if found:
        difference, low, high = (100 * x for x in (found["cv_difference"], *found["interval"]))
        yield (
            f"Ensemble − {found['member']}, cross-validation: {difference:+.2f} points "
            f"(95 %: {low:+.2f} to {high:+.2f})"
        )
    yield (
        "In groups, the candidates of a question are decided together. That measures how the "
        "annotators built the files and does not carry over to questions in the wild"
    )
    if metrics.get("choice"):
        yield "submission.csv is decided as {way} ({why})".format(**metrics["choice"])
    audit = metrics.get("audit")
    verdict = audit["verdict"] if audit else "not audited: there is no labelled dev file"
    yield f"Leak audit: {verdict}"
    if metrics["both_labels"]:
        yield (
            f"{len(metrics['both_labels'])} pair(s) of train stand there as the same and as "
            "different; training reads them as they stand, and the report lists them"
        )
    count = metrics.get("dev_pairs_left_out", 0)
    dev = metrics["data"].get("dev")
    if dev and dev["pairs"] - count < FEWEST_PAIRS:
        yield (
            f"Dev has fewer than {FEWEST_PAIRS} pairs to score: too few for an interval, and its "
            "accuracy says little"
        )
    if count:
        yield (
            f"{count} of {metrics['data']['dev']['pairs']:,} dev pairs stand in what was trained "
            "on and are left out of dev's scores"
        )
