"""The rows of a study's table, computed from the trials on disk."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....data.graph import components, wording
from ..trials.arm import Arm, Study
from ..trials.split_parts import Parts
from ..trials.trial import Trained
from .statistics import Difference, Score, apart, difference, false_discovery, hits, score


@dataclass(frozen=True)
class Row:
    """One score of one arm in one column.

    Attributes:
        reference: the arm that `against` is about; "" for the reference itself.
        q_value: `against.p_value` adjusted for the number of comparisons in the table.
        facts: means over seeds.
        audit: the verdict on training and evaluation part; of all seeds when they differ.
    """

    column: str
    arm: str
    score_name: str
    score: Score
    reference: str
    against: Difference | None
    q_value: float | None
    facts: Mapping[str, float]
    audit: str

    def flat(self) -> dict[str, Any]:
        """One level of names and values, for CSV and JSON."""
        score = asdict(self.score)
        per_seed = score.pop("per_seed")
        record = {
            "column": self.column,
            "arm": self.arm,
            "score": self.score_name,
            **score,
            **{f"accuracy_seed{number}": value for number, value in enumerate(per_seed, 1)},
            "reference": self.reference,
        }
        if self.against:
            against = asdict(self.against)
            record |= {
                "difference": against["difference"],
                "difference_low": against["low"],
                "difference_high": against["high"],
                "p_value": against["p_value"],
                "q_value": self.q_value,
                "mcnemar_p": against["mcnemar_p"],
            }
        return record | dict(self.facts) | {"audit": self.audit}


@dataclass(frozen=True)
class Gap:
    """How much higher an arm scores in one column than in another, on other pairs."""

    arm: str
    higher: str
    lower: str
    difference: float
    low: float
    high: float

    def __str__(self) -> str:
        return (
            f"{self.arm}: {100 * self.difference:+.2f} points (95 %: {100 * self.low:+.2f} to "
            f"{100 * self.high:+.2f}) in '{self.higher}' over '{self.lower}'."
        )


class Trials:
    """All trials of a study by column and arm, their scores stacked over seeds."""

    def __init__(self, trained: Mapping[tuple[str, str], list[Trained]]) -> None:
        self.trained = trained

    def score_names(self, column: str, arm: str) -> list[str]:
        """In the order in which the arm has reported them."""
        return self.trained[column, arm][0].record["scores"]

    def scores(self, column: str, arm: str, name: str) -> NDArray[np.float64]:
        """float64[seeds, P]."""
        return np.stack([one.score(name) for one in self.trained[column, arm]])

    def facts(self, column: str, arm: str) -> dict[str, float]:
        """Means over seeds."""
        records = [one.record["facts"] for one in self.trained[column, arm]]
        return {name: float(np.mean([record[name] for record in records])) for name in records[0]}

    def audit(self, column: str, arm: str) -> str:
        """The verdicts of all seeds, each once."""
        verdicts = (one.record["audit"]["verdict"] for one in self.trained[column, arm])
        return "; ".join(dict.fromkeys(verdicts))


def make_rows(
    study: Study, arms: list[Arm], parts: Mapping[str, Parts], trials: Trials
) -> list[Row]:
    """Score every arm in every column, and compare it with its reference."""

    def facts(column: str, arm: Arm) -> dict[str, float]:
        own = trials.facts(column, arm.name)
        seconds = trials.facts(column, arm.reference)["train_seconds"]
        return own | {"cost": own["train_seconds"] / seconds}

    rows = []
    for column, part in parts.items():
        labels = part.evaluation["label"].to_numpy()
        component = components(part.evaluation, key=wording)
        for arm in arms:
            for name in trials.score_names(column, arm.name):
                scores = trials.scores(column, arm.name, name)
                rival, other = arm.reference, study.reference_score or name
                if name in arm.within:
                    rival, other = arm.name, arm.within[name]
                is_reference = (arm.name, name) == (rival, other)
                against = None
                if not is_reference:
                    reference = trials.scores(column, rival, other)
                    against = difference(labels, scores, reference, component)
                rows.append(
                    Row(
                        column,
                        arm.name,
                        name,
                        score(labels, scores, component),
                        "" if is_reference else rival,
                        against,
                        None,
                        facts(column, arm),
                        trials.audit(column, arm.name),
                    )
                )
    return _adjusted(rows)


def column_gaps(arms: list[Arm], parts: Mapping[str, Parts], trials: Trials) -> list[Gap]:
    """Every arm's first score in the first column minus that in the second, if there is one."""
    if len(parts) < 2:
        return []
    two = list(parts.items())[:2]
    found = []
    for arm in arms:
        sides = []
        for column, part in two:
            name = trials.score_names(column, arm.name)[0]
            labels = part.evaluation["label"].to_numpy()
            right = hits(labels, trials.scores(column, arm.name, name))
            sides.append((right, components(part.evaluation, key=wording)))
        found.append(Gap(arm.name, two[0][0], two[1][0], *apart(*sides)))
    return found


def _adjusted(rows: list[Row]) -> list[Row]:
    adjusted = iter(false_discovery([row.against.p_value for row in rows if row.against]))
    return [replace(row, q_value=next(adjusted)) if row.against else row for row in rows]
