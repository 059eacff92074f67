"""Is one run better than another, or only luckier? A paired test on the same training rows."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..data.graph import components, wording
from ..ensemble.combine import blend
from ..ensemble.finished import finished_run
from ..errors import UserError
from .intervals import mcnemar, paired_difference, paired_loss_difference
from .scores import accuracy


@dataclass(frozen=True)
class Comparison:
    """Cross-fitted accuracies of two runs on the same rows, and the losses of their ensembles.

    `difference` is a − b with its 95 % interval from a bootstrap over components, `p_value`
    McNemar's exact one, which takes rows as independent and is therefore the bolder of the two.
    `loss` is the difference of the out-of-fold log losses with its interval: below 0, a is better.
    """

    pairs: int
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float
    loss: tuple[float, float, float]

    def __str__(self) -> str:
        return (
            f"{self.pairs} pairs: {self.a:.2%} against {self.b:.2%}, difference "
            f"{100 * self.difference:+.2f} points (95 %: {100 * self.low:+.2f} to "
            f"{100 * self.high:+.2f}), McNemar p = {self.p_value:.3f}; "
            "log loss {:+.4f} (95 %: {:+.4f} to {:+.4f})".format(*self.loss)
        )


def compare_runs(work_a: Path, work_b: Path) -> Comparison:
    """Compare two work directories, such as data/work/small, by their out-of-fold decisions.

    Raises:
        UserError: one of them is not finished, or they were trained on different rows.
    """
    frames, decided, logits = [], [], []
    for work in (work_a, work_b):
        layout, decision = finished_run(work, work)
        frames.append(layout.train())
        decided.append(np.load(layout.cross_fitted_file, allow_pickle=False)[0])
        out_of_fold = layout.out_of_fold("oof", layout.fold_numbers())
        logits.append(blend(out_of_fold, decision.weights) - decision.threshold)
    if not frames[0].equals(frames[1]):
        raise UserError(f"{work_a} and {work_b} have different training rows: nothing to compare.")
    labels, component = frames[0]["label"].to_numpy(), components(frames[0], key=wording)
    difference, low, high = paired_difference(labels, decided[0], decided[1], component)
    return Comparison(
        len(labels),
        accuracy(labels, decided[0]),
        accuracy(labels, decided[1]),
        difference,
        low,
        high,
        mcnemar(labels, *decided),
        paired_loss_difference(labels, logits[0], logits[1], component),
    )
