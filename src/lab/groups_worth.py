"""The parts of the rule for groups, one taken away at a time, and what damage it survives.

All of it out of fold: what decides a fold's rows was tuned on the other folds.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.table import Table

from ..config import Config
from ..data.graph import components, wording
from ..ensemble.choose import share_in_common_sizes
from ..ensemble.combine import Decision, blend, blend_alike
from ..ensemble.finished import finished_run
from ..ensemble.group_rule import weigh
from ..ensemble.predicted import Predicted
from ..ensemble.tune import Search, tune
from ..layout import Layout
from ..report.by_group import Damage, cut, move, rearranged
from ..report.intervals import accuracy_interval, paired_difference
from ..report.phrases import score

FULL = "number and kinship"
_RATES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7)


def print_worth(config: Config, layout: Layout) -> None:
    """Print two tables: the parts of the rule, and damaged files."""
    layout, _ = finished_run(layout.work, layout.results)
    train, folds = Predicted.out_of_fold(layout), layout.fold_numbers()
    search = Search(config.tune.trials, config.tune.seed, "sqlite:///:memory:", False, "worth")
    tuned = {k: tune(search, train.part(folds != k), f"without-fold{k}") for k in np.unique(folds)}
    plain = replace(train, alike={})
    counted = {k: tune(search, plain.part(folds != k), f"number{k}") for k in np.unique(folds)}
    labels, component = train.frame["label"].to_numpy(), components(train.frame, key=wording)

    def decided(
        decisions: dict[int, Decision], decide: Callable[[Decision, Predicted], np.ndarray]
    ) -> np.ndarray:
        found = np.empty(len(folds), np.int64)
        for fold, decision in decisions.items():
            found[folds == fold] = decide(decision, train.part(folds == fold))
        return found

    arms = {
        "pair by pair": decided(tuned, lambda d, part: d.decide(part.logits)),
        "number of ones": decided(
            counted, lambda d, part: d.decide_groups(replace(part, alike={}))
        ),
        FULL: decided(tuned, Decision.decide_groups),
        "the same, every pair by its marginal": decided(tuned, _by_marginals),
        "the same, the true number given": decided(tuned, _given_the_number),
    }
    table = Table("decided by", "out of fold", f"against {FULL}", title="The rule's parts")
    for name, found in arms.items():
        gain = paired_difference(labels, found, arms[FULL], component)
        difference = "{:+.2f} ({:+.2f} to {:+.2f})".format(*(100 * x for x in gain))
        interval = accuracy_interval(labels, found, component)
        table.add_row(name, score((found == labels).mean(), interval), difference)
    Console().print(table)

    table = Table("damage", "share", "pair by pair", "in groups", "pairs in common sizes")
    for name, kind in {"groups cut to three pairs": cut, "pairs moved out": move}.items():
        for rate in _RATES:
            parts = [train.part(folds == fold) for fold in tuned]
            row = _damaged(kind(rate), parts, list(tuned.values()), train)
            table.add_row(name, f"{rate:.0%}", *(f"{value:.2%}" for value in row))
    Console().print(table)


def _damaged(
    damage: Damage, parts: list[Predicted], decisions: list[Decision], train: Predicted
) -> list[float]:
    """Accuracy pair by pair and in groups, and the share of pairs in sizes common in train."""
    rng, found = np.random.default_rng(0), []
    for part, decision in zip(parts, decisions, strict=True):
        table = rearranged(part, *damage(part.frame, rng))
        labels = table.frame["label"].to_numpy()
        right = (decision.decide(table.logits), decision.decide_groups(table))
        share, _ = share_in_common_sizes(train.frame, table.frame)
        means = [*(float(np.mean(d == labels)) for d in right), share]
        found.append([len(labels), *means])
    rows = np.array(found)
    return np.average(rows[:, 1:], axis=0, weights=rows[:, 0]).tolist()


def _weighed(decision: Decision, part: Predicted):
    parameters = np.array([getattr(decision.groups, n) for n in ("scale", "intercept", "kinship")])
    logits = blend(part.logits, decision.weights)
    alike = blend_alike(part.alike, decision.weights)
    for sized in weigh(part.frame, logits, alike, decision.groups.prior):
        yield sized, sized.scores(parameters)


def _by_marginals(decision: Decision, part: Predicted) -> np.ndarray:
    """Each pair by whether it is labelled 1 in more than half of the probability."""
    found = decision.decide(part.logits)
    for sized, scores in _weighed(decision, part):
        shares = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
        found[sized.rows] = shares @ sized.labels > 0.5
    return found


def _given_the_number(decision: Decision, part: Predicted) -> np.ndarray:
    """The most probable labelling with as many ones as there are: what order alone can reach."""
    found, labels = decision.decide(part.logits), part.frame["label"].to_numpy()
    for sized, scores in _weighed(decision, part):
        true = labels[sized.rows].sum(axis=1)[:, None] == sized.labels.sum(axis=1)
        known = true.any(axis=1)
        best = np.where(true, scores, -np.inf).argmax(axis=1)
        found[sized.rows[known]] = sized.labels[best[known]]
    return found
