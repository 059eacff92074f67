"""Scores of a finished run: metrics.json, figures and the page."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..config import Config
from ..data.graph import Pair, components, pair_keys, wording
from ..data.pairs import read_pairs
from ..ensemble.combine import Decision, blend
from ..ensemble.predicted import Predicted
from ..files import read_json, write_json
from ..layout import Layout
from . import figures
from .by_group import by_size, under_damage
from .intervals import accuracy_interval, paired_difference
from .page import write_report
from .phrases import ENSEMBLE, FEWEST_PAIRS, IN_GROUPS
from .scores import accuracy, confident_mistakes, per_category

_NEW_QUESTIONS = ("dev_accuracy_new_questions", "dev_interval_new_questions")


def summarise(
    config: Config, layout: Layout, folders: Mapping[str, Sequence[Path]], folder: Path
) -> None:
    """Write metrics.json, figures/*.svg and report.html into `layout.results`.

    Members are scored at the threshold 0; the ensemble's cross-validation score is cross-fitted,
    its dev score uses what was tuned on the training folds. Intervals resample components.

    Args:
        folders: of the steps of each earlier stage, whose costs are summed.
    """
    decision = Decision.read(layout.decision_file)
    train, folds = layout.train(), layout.fold_numbers()
    out_of_fold = layout.out_of_fold("oof", folds)
    labels, component = train["label"].to_numpy(), components(train, key=wording)
    decided = {name: _positive(logits) for name, logits in out_of_fold.items()}
    cross_fitted = np.load(layout.cross_fitted_file, allow_pickle=False)
    decided[ENSEMBLE], decided[IN_GROUPS] = cross_fitted
    dev = _DevScores(layout, decision)
    scores = {
        name: _scores(train, predicted, component, "cv") | dev.of(name)
        for name, predicted in decided.items()
    }
    best = max(out_of_fold, key=lambda name: scores[name]["cv_accuracy"])
    gain = paired_difference(labels, decided[ENSEMBLE], decided[best], component)
    facts = read_json(layout.facts_file)
    metrics = {
        "profile": config.profile,
        "data": facts["files"],
        "is_sample": facts["is_sample"],
        "audit": facts["audit"],
        "both_labels": facts["both_labels"],
        "dev_pairs_left_out": dev.left_out,
        "members": _members(config, layout, scores, decision),
        "ensemble": scores[ENSEMBLE] | {"threshold": decision.threshold},
        "in_groups": scores[IN_GROUPS] | asdict(decision.groups),
        "by_size": [asdict(row) for row in by_size(train, cross_fitted)],
        "dev_under_damage": dev.damage,
        "choice": read_json(layout.choice_file) if layout.table("test") is not None else None,
        "gain_over_best_member": dict(member=best, cv_difference=gain[0], interval=gain[1:]),
        **_costs(folders),
        "plan": read_json(layout.plan_file) if layout.plan_file.is_file() else {},
        # A storage's URL may hold a password, and no result depends on it.
        "settings": config.model_dump(mode="json", exclude={"optuna"}),
    }
    write_json(layout.results / "metrics.json", metrics)
    blended = blend(out_of_fold, decision.weights)
    pictures = _draw(layout, train, blended, decision, cross_fitted)
    mistakes = confident_mistakes(train, blended, decision.threshold)
    write_report(metrics, pictures, mistakes, layout.results / "report.html")


def _members(
    config: Config, layout: Layout, scores: Mapping[str, dict], decision: Decision
) -> dict[str, dict[str, Any]]:
    failed = layout.learned_nothing()
    return {
        name: {
            "architecture": member.architecture,
            "encoder": member.encoder,
            "loaded": read_json(layout.fold_model(name, 0) / "member.json")["loaded"],
            **scores[name],
            "weight": decision.weights[name],
            "learned_nothing": _said(failed.get(name)),
        }
        for name, member in config.members.items()
    }


class _DevScores:
    """Dev's scores, of the pairs that no model was trained on.

    A dev file that is there when the training parts are made is kept out of them. One that comes
    later, or in its place, is predicted by the weights that are there, and may share pairs with
    what they were trained on: those are left out.
    """

    def __init__(self, layout: Layout, decision: Decision) -> None:
        dev = layout.table("dev")
        self.labels: dict[str, np.ndarray] = {}
        self.left_out, self.damage = 0, list[dict[str, Any]]()
        if dev is None:
            return
        known = {pair for fold in range(layout.folds) for pair in _trained_on(layout, fold)}
        kept = np.array([pair not in known for pair in pair_keys(dev, wording)])
        facts = read_json(layout.facts_file)
        self.left_out = int((~kept).sum())
        self.frame = dev[kept].reset_index(drop=True)
        self.component = components(dev, key=wording)[kept]
        self.new = np.array(facts["dev_rows_with_new_questions"], dtype=bool)[kept]
        table = Predicted.unseen(layout, "dev")
        self.labels = {name: _positive(values)[kept] for name, values in table.logits.items()}
        self.labels[ENSEMBLE] = decision.decide(table.logits)[kept]
        self.labels[IN_GROUPS] = decision.decide_groups(table)[kept]
        self.damage = under_damage(table, decision, kept) if kept.any() else []

    def of(self, name: str) -> dict[str, Any]:
        """The scores of a member or the ensemble; None where there is nothing to score."""
        scores = dict.fromkeys(("dev_accuracy", "dev_interval", *_NEW_QUESTIONS))
        if not self.labels or len(self.frame) == 0:
            return scores
        scores |= _scores(self.frame, self.labels[name], self.component, "dev")
        if self.new.any():
            part = self.frame[self.new], self.labels[name][self.new], self.component[self.new]
            scores |= dict(zip(_NEW_QUESTIONS, _scores(*part, "dev").values(), strict=True))
        return scores


def _trained_on(layout: Layout, fold: int) -> list[Pair]:
    return pair_keys(read_pairs(layout.training_part_file(fold), labelled=True).frame, wording)


def _said(failed: tuple[str, list[int]] | None) -> str | None:
    """Over what, and on which folds, a member has learned nothing."""
    return failed and f"over {failed[0]} on fold {', '.join(map(str, failed[1]))}"


def _positive(logits: np.ndarray) -> np.ndarray:
    return (logits > 0).astype(np.int64)


def _scores(frame: pd.DataFrame, predicted: np.ndarray, component: np.ndarray, kind: str) -> dict:
    labels = frame["label"].to_numpy()
    interval = accuracy_interval(labels, predicted, component)
    return {
        f"{kind}_accuracy": accuracy(labels, predicted),
        f"{kind}_interval": list(interval) if len(frame) >= FEWEST_PAIRS else None,
    }


def _costs(folders: Mapping[str, Sequence[Path]]) -> dict[str, Any]:
    """Seconds a stage and the highest memory peak, from the records of this run's own steps."""
    seconds, peaks = {}, [0.0]
    for stage, places in folders.items():
        records = [read_json(place / "done.json") for place in places]
        seconds[stage] = round(sum(record["seconds"] for record in records), 2)
        peaks += [record["peak_memory_gb"] for record in records]
    return {"seconds": seconds, "peak_memory_gb": max(peaks)}


def _draw(
    layout: Layout,
    train: pd.DataFrame,
    blended: np.ndarray,
    decision: Decision,
    decided: np.ndarray,
) -> dict[str, Path]:
    """Figures of the ensemble's out-of-fold predictions: caption → file."""
    folder = layout.results / "figures"
    labels, folds = train["label"].to_numpy(), layout.fold_numbers()
    component = components(train, key=wording)
    pictures = {
        "Accuracy by threshold": folder / "threshold.svg",
        "Reliability": folder / "reliability.svg",
        "Accuracy by category": folder / "categories.svg",
        "Accuracy by fold": folder / "folds.svg",
        "Groups, out of fold": folder / "groups.svg",
        "Training": folder / "training.svg",
    }
    threshold, reliability, categories, by_fold, groups, training = pictures.values()
    figures.threshold_curve(labels, blended, decision.threshold, threshold)
    figures.reliability_diagram(labels, 1 / (1 + np.exp(-blended)), reliability)
    parts = train.assign(category=[f"fold {fold}" for fold in folds])
    for frame, title, file in (
        (train, "Accuracy by category", categories),
        (parts, "Accuracy by fold", by_fold),
    ):
        rows = per_category(frame, decided[0], component)
        if frame is parts:
            rows.sort(key=lambda row: row.category)
        names = [row.category or "all" for row in rows]
        values, intervals = [row.accuracy for row in rows], [row.interval for row in rows]
        figures.accuracy_bars(names, values, intervals, title, file)
    by_way = {
        f"{row.size}: {what}": value
        for row in by_size(train, decided)
        for what, value in (
            ("pair by pair", row.pair_by_pair),
            ("in groups", row.in_groups),
            ("number of ones right", row.count_right),
        )
    }
    names, values = list(by_way), list(by_way.values())
    title = "Accuracy by pairs in a group"
    figures.accuracy_bars(names, values, [None] * len(names), title, groups)
    histories = {
        f"{name}/{fold}": read_json(layout.fold_model(name, fold) / "history.json")
        for name, fold in layout.members_and_folds
    }
    figures.training_curves(histories, training)
    return pictures
