"""The bi-encoder's objective: classification, regression of the cosine, triplets, contrast.

At prediction time the article compares two vectors by their cosine alone. So every network here is
scored that way, with a threshold tuned on the validation part, and those with a head by their head
as well.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..config import MemberConfig
from ..models.encoder import load_encoder
from ..report.metrics import auc
from .bench.arm import Arm, Design, Outcome, Study, Trial, Workplace
from .bench.budget import Budget
from .bench.fitted import train_member, tuned_margin
from .bench.standard import HEAD, base_member, official_column
from .objectives.cosine import CosineMse, CosineSiamese
from .objectives.triplet import MARGIN, TripletLoss

REFERENCE = "softmax"
COSINE = "cosine"
CONTRAST = 0.5  # weight of the contrastive term


def ranking_error(labels: np.ndarray, scores: np.ndarray) -> float:
    """1 − area under the ROC curve: needs no threshold, so it can choose the epoch of any arm."""
    return 1.0 - auc(labels, scores)


def design(place: Workplace) -> Design:
    """Two arms with a head, two without."""
    base = base_member(place.config, "siamese", place.budget)
    contrastive = base.model_copy(update={"contrastive": CONTRAST})
    arms = [
        _arm(REFERENCE, base, {}),
        _arm("softmax + contrastive term", contrastive, {}),
        _arm("cosine, mean squared error", base, {"loss": "mse"}, CosineMse()),
        _arm("triplets, semi-hard", base, {"loss": "triplet", "margin": MARGIN}, TripletLoss()),
    ]
    return Design(arms, [official_column(place)])


def _arm(
    name: str, member: MemberConfig, settings: dict[str, Any], objective: Callable | None = None
) -> Arm:
    """An arm with a head where `objective` is None, else one whose answer is the cosine."""

    def make(trial: Trial) -> Outcome:
        train = partial(train_member, trial, member, criterion=ranking_error)
        parts = trial.parts
        if objective is None:
            fitted = train()
            scores = {HEAD: fitted.predict(parts.evaluation)}
        else:
            fitted = train(build=build_cosine, objective=objective)
            scores = {}
        tuned_on = parts.validation["label"].to_numpy(), fitted.cosines(parts.validation)
        scores[COSINE] = tuned_margin(tuned_on, fitted.cosines(parts.evaluation))
        return fitted.outcome(scores)

    recorded = {"member": member.model_dump(mode="json")} | settings
    return Arm(name, recorded, make, REFERENCE)


def build_cosine(member: MemberConfig, pretrained: Path, seed: int):
    """A pre-trained encoder and no head; it draws nothing, but the seed is every builder's."""
    encoder, tokenizer = load_encoder(member.encoder, pretrained, member.training.dropout)
    return CosineSiamese(encoder, member.pooling), tokenizer


STUDY = Study(
    title="Objectives of the bi-encoder",
    full=Budget(pairs=2500, evaluation=2900, epochs=3),
    design=design,
    code=["objective.py", "objectives"],
    reference_score=HEAD,
    caption=(
        "Score 'cosine': the two vectors' cosine against a threshold tuned on the validation part, "
        f"without any head. Contrastive term: weight {CONTRAST:g}. Triplets: margin {MARGIN:g}. "
        "The epoch of every arm is the one with the highest area under the ROC curve there."
    ),
)
