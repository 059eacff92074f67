"""Is one run better than another, or only luckier? A paired test on the same training rows."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..data.graph import components, wording
from ..data.pairs import read_pairs
from ..errors import UserError
from .metrics import accuracy, mcnemar, paired_difference


@dataclass(frozen=True)
class Comparison:
    """Cross-fitted accuracies of two runs on the same rows.

    `difference` is a − b with its 95 % interval from a bootstrap over components, `p_value`
    McNemar's exact one, which takes rows as independent and is therefore the bolder of the two.
    """

    pairs: int
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float

    def __str__(self) -> str:
        return (
            f"{self.pairs} pairs: {self.a:.2%} against {self.b:.2%}, difference "
            f"{100 * self.difference:+.2f} points (95 %: {100 * self.low:+.2f} to "
            f"{100 * self.high:+.2f}), McNemar p = {self.p_value:.3f}"
        )


def compare_runs(work_a: Path, work_b: Path) -> Comparison:
    """Compare two work directories, such as data/work/small, by their out-of-fold decisions.

    Raises:
        UserError: one of them is not finished, or they were trained on different rows.
    """
    frames, decided = [], []
    for work in (work_a, work_b):
        labels = work / "tune" / "cross_fitted.npy"
        if not labels.is_file():
            raise UserError(f"{work} holds no finished run (no {labels}). Run the pipeline first.")
        frames.append(read_pairs(work / "prepare" / "train.csv", labelled=True).frame)
        decided.append(np.load(labels, allow_pickle=False))
    if not frames[0].equals(frames[1]):
        raise UserError(f"{work_a} and {work_b} have different training rows: nothing to compare.")
    labels, groups = frames[0]["label"].to_numpy(), components(frames[0], key=wording)
    difference, low, high = paired_difference(labels, *decided, groups)
    return Comparison(
        len(labels),
        accuracy(labels, decided[0]),
        accuracy(labels, decided[1]),
        difference,
        low,
        high,
        mcnemar(labels, *decided),
    )
