"""Scores of a finished run: metrics.json, figures and the page."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..config import Config
from ..data.graph import components, wording
from ..ensemble.combine import Decision, blend
from ..files import read_json, write_json
from ..layout import Layout
from . import figures
from .intervals import accuracy_interval, paired_difference
from .metrics import accuracy, confident_mistakes, per_category
from .page import write_report

ENSEMBLE = "ensemble"
_NEW_QUESTIONS = ("dev_accuracy_new_questions", "dev_interval_new_questions")


def summarise(config: Config, layout: Layout, folder: Path) -> None:
    """Write metrics.json, figures/*.svg and report.html into `layout.results`.

    Members are scored at the threshold 0; the ensemble's cross-validation score is cross-fitted,
    its dev score uses what was tuned on the training folds. Intervals resample components.
    """
    decision, facts = Decision.read(layout.decision_file), read_json(layout.facts_file)
    train, dev = layout.train(), layout.table("dev")
    out_of_fold, unseen = layout.out_of_fold(), layout.unseen("dev") if dev is not None else {}
    cv_labels = {name: _positive(logits) for name, logits in out_of_fold.items()}
    cv_labels[ENSEMBLE] = np.load(layout.cross_fitted_file, allow_pickle=False)
    dev_labels = {name: _positive(logits) for name, logits in unseen.items()}
    if dev is not None:
        dev_labels[ENSEMBLE] = decision.decide(unseen)
    groups = components(train, key=wording)
    new = np.array(facts.get("dev_rows_with_new_questions", []), dtype=bool)
    scores = {
        name: _scores(train, cv_labels[name], groups, "cv")
        | _dev_scores(dev, dev_labels.get(name), new)
        for name in cv_labels
    }
    best = max(out_of_fold, key=lambda name: scores[name]["cv_accuracy"])
    labels = train["label"].to_numpy()
    gain = paired_difference(labels, cv_labels[ENSEMBLE], cv_labels[best], groups)
    members = {
        name: {
            "architecture": member.architecture,
            "encoder": member.encoder,
            **scores[name],
            "weight": decision.weights[name],
        }
        for name, member in config.members.items()
    }
    equal = blend(out_of_fold, dict.fromkeys(out_of_fold, 1.0))
    metrics = {
        "profile": config.profile,
        "data": facts["files"],
        "is_sample": facts["is_sample"],
        "audit": facts["audit"],
        "members": members,
        "ensemble": scores[ENSEMBLE] | {"threshold": decision.threshold},
        "equal_weights_cv_accuracy": accuracy(labels, _positive(equal)),
        "gain_over_best_member": {
            "member": best,
            "cv_difference": gain[0],
            "interval": list(gain[1:]),
        },
        "weights": decision.weights,
        "threshold": decision.threshold,
        **_costs(layout),
        # A storage's URL may hold a password, and no result depends on it.
        "settings": config.model_dump(mode="json", exclude={"optuna"}),
    }
    write_json(layout.results / "metrics.json", metrics)
    blended = blend(out_of_fold, decision.weights)
    pictures = _draw(layout, train, blended, decision, cv_labels[ENSEMBLE], groups)
    mistakes = confident_mistakes(train, blended, decision.threshold)
    write_report(metrics, pictures, mistakes, layout.results / "report.html")


def _positive(logits: np.ndarray) -> np.ndarray:
    return (logits > 0).astype(np.int64)


def _scores(frame: pd.DataFrame, predicted: np.ndarray, groups: np.ndarray, kind: str) -> dict:
    labels = frame["label"].to_numpy()
    return {
        f"{kind}_accuracy": accuracy(labels, predicted),
        f"{kind}_interval": list(accuracy_interval(labels, predicted, groups)),
    }


def _dev_scores(dev: pd.DataFrame | None, predicted: np.ndarray | None, new: np.ndarray) -> dict:
    if dev is None or predicted is None:
        return dict.fromkeys(("dev_accuracy", "dev_interval", *_NEW_QUESTIONS))
    groups = components(dev, key=wording)
    scores = _scores(dev, predicted, groups, "dev") | dict.fromkeys(_NEW_QUESTIONS)
    if new.any():
        found = _scores(dev[new], predicted[new], groups[new], "dev")
        scores |= dict(zip(_NEW_QUESTIONS, found.values(), strict=True))
    return scores


def _costs(layout: Layout) -> dict[str, Any]:
    """Seconds a stage and the highest memory peak, from the records of this run's own steps.

    The work folder may hold more: folds and members of earlier settings, an index, pre-training.
    """
    parts = [layout.training_part_file(fold).parent for fold in range(layout.folds)]
    stages = {
        "training-part": parts,
        "train": layout.fold_models,
        "predict": [file.parent for role in ("dev", "test") for file in layout.logits_files(role)],
    }
    seconds, peaks = {}, [0.0]
    for stage in ("prepare", "split", "training-part", "train", "predict", "tune", "submit"):
        folders = stages.get(stage, [layout.work / stage])
        markers = [folder / "done.json" for folder in folders]
        records = [read_json(marker) for marker in markers if marker.is_file()]
        seconds[stage] = round(sum(record["seconds"] for record in records), 2)
        peaks += [record["peak_memory_gb"] for record in records]
    return {"seconds": seconds, "peak_memory_gb": max(peaks)}


def _draw(
    layout: Layout,
    train: pd.DataFrame,
    blended: np.ndarray,
    decision: Decision,
    decided: np.ndarray,
    groups: np.ndarray,
) -> dict[str, Path]:
    """Figures of the ensemble's out-of-fold predictions: caption → file."""
    folder = layout.results / "figures"
    labels, folds = train["label"].to_numpy(), layout.fold_numbers()
    pictures = {
        "Accuracy by threshold": folder / "threshold.svg",
        "Reliability": folder / "reliability.svg",
        "Accuracy by category": folder / "categories.svg",
        "Accuracy by fold": folder / "folds.svg",
        "Training": folder / "training.svg",
    }
    threshold, reliability, categories, by_fold, training = pictures.values()
    figures.threshold_curve(labels, blended, decision.threshold, threshold)
    figures.reliability_diagram(labels, 1 / (1 + np.exp(-blended)), reliability)
    rows = per_category(train, decided, groups)
    figures.accuracy_bars(
        [row.category or "all" for row in rows],
        [row.accuracy for row in rows],
        [row.interval for row in rows],
        "Accuracy by category",
        categories,
    )
    parts = [folds == fold for fold in range(layout.folds)]
    figures.accuracy_bars(
        [f"fold {fold}" for fold in range(layout.folds)],
        [accuracy(labels[part], decided[part]) for part in parts],
        [accuracy_interval(labels[part], decided[part], groups[part]) for part in parts],
        "Accuracy by fold",
        by_fold,
    )
    histories = {
        f"{name}/{fold}": read_json(layout.fold_model(name, fold) / "history.json")
        for name in layout.members
        for fold in range(layout.folds)
    }
    figures.training_curves(histories, training)
    return pictures
