"""Every arm against every other, for the questions that a table with one reference leaves open."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from ....data.graph import components, wording
from ....report.intervals import mean_gain
from ..trials.arm import Arm
from ..trials.split_parts import Parts
from .statistics import hits
from .study_table import Trials


def all_differences(
    arms: Sequence[Arm], parts: Mapping[str, Parts], trials: Trials
) -> list[dict[str, Any]]:
    """One record for each two arms in each column, by every score that both report.

    `difference` is the accuracy of `arm` minus that of `other` on the same pairs, mean over seeds,
    with its 95 % interval over components. There is no p-value: of so many comparisons some look
    sure by chance, so an interval counts for the one that was asked about beforehand.
    """
    records = []
    for column, part in parts.items():
        labels = part.evaluation["label"].to_numpy()
        component = components(part.evaluation, key=wording)
        right = {
            (arm.name, name): hits(labels, trials.scores(column, arm.name, name))
            for arm in arms
            for name in trials.score_names(column, arm.name)
        }
        for (other, name), (arm, same) in combinations(right, 2):
            if name != same:
                continue
            gain, low, high = mean_gain(right[arm, name] - right[other, name], component)
            records.append(
                {
                    "column": column,
                    "score": name,
                    "arm": arm,
                    "other": other,
                    "difference": gain,
                    "low": low,
                    "high": high,
                }
            )
    return records
