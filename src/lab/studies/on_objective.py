"""The bi-encoder's objective: classification, regression of the cosine, triplets, contrast.

At prediction time the article compares two vectors by their cosine alone. So every network here is
scored that way, with a threshold tuned on the validation part, and those with a head by their head
as well. A cosine that tells pairs apart need not rank well: how often the nearest of all evaluation
questions is a labelled duplicate stands beside it.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from accelerate import PartialState
from sklearn.metrics import roc_auc_score

from ...config import MemberConfig
from ...models.api import Tokenizer
from ...models.registry import load_encoder
from ...search.duplicates import labelled_groups, retrieval
from .objectives.cosine import CosineMse, CosineSiamese
from .objectives.triplet import MARGIN, TripletLoss
from .trials.arm import Arm, Design, Outcome, Study, Trial, Workplace
from .trials.budget import Budget
from .trials.fitted import Fitted, train_member, tuned_margin
from .trials.standard import HEAD, base_member, official_column

REFERENCE = "softmax"
COSINE = "cosine"
CONTRAST = (0.2, 1.0)  # weights of the contrastive term


def ranking_error(labels: np.ndarray, scores: np.ndarray) -> float:
    """1 − area under the ROC curve: needs no threshold, so it can choose the epoch of any arm."""
    return 1.0 - float(roc_auc_score(labels, scores))


def design(place: Workplace) -> Design:
    """The encoder as it comes, two kinds of arms with a head, two without."""
    base = base_member(place.config, "siamese", place.budget)
    contrastive = {
        f"softmax + {weight:g} contrastive": base.model_copy(
            update={"losses": {"contrastive": weight}}
        )
        for weight in CONTRAST
    }
    arms = [
        _arm(REFERENCE, base, {}, train_member, has_head=True),
        *(_arm(name, m, {}, train_member, has_head=True) for name, m in contrastive.items()),
        _arm("cosine, mean squared error", base, {"loss": "mse"}, _without_head(CosineMse())),
        _arm(
            "triplets, semi-hard",
            base,
            {"loss": "triplet", "margin": MARGIN},
            _without_head(TripletLoss()),
        ),
        _arm("untuned encoder", base, {"loss": "none"}, untuned),
    ]
    return Design(arms, [official_column(place)])


def _without_head(objective: Callable) -> Callable[..., Fitted]:
    return partial(train_member, build=build_cosine, objective=objective)


def untuned(trial: Trial, member: MemberConfig, **_: Any) -> Fitted:
    """The pre-trained encoder as it is."""
    model, tokenizer = build_cosine(member, trial.pretrained, trial.seed)
    model.to(PartialState().device)
    return Fitted(model, tokenizer, member, trial.parts.training.iloc[:0], [], seconds=0.0)


def _arm(
    name: str,
    member: MemberConfig,
    settings: dict[str, Any],
    train: Callable[..., Fitted],
    has_head: bool = False,
) -> Arm:
    def make(trial: Trial) -> Outcome:
        fitted = train(trial, member, criterion=ranking_error)
        parts = trial.parts
        scores = {HEAD: fitted.predict(parts.evaluation)} if has_head else {}
        tuned_on = parts.validation["label"].to_numpy(), fitted.cosines(parts.validation)
        cosines = fitted.cosines(parts.evaluation)
        scores[COSINE] = tuned_margin(tuned_on, cosines)
        questions, groups = labelled_groups(parts.evaluation)
        found = retrieval(fitted.vectors(questions), groups)
        return fitted.outcome(
            scores,
            cosine_auc=float(roc_auc_score(parts.evaluation["label"], cosines)),
            duplicate_first=found.recall_at_1,
        )

    recorded = {"member": member.model_dump(mode="json")} | settings
    return Arm(name, recorded, make, REFERENCE)


def build_cosine(
    member: MemberConfig, pretrained: Path, seed: int
) -> tuple[CosineSiamese, Tokenizer]:
    """A pre-trained encoder and no head; it draws nothing, but the seed is every builder's."""
    encoder, tokenizer = load_encoder(member.encoder, pretrained, member.training.dropout)
    return CosineSiamese(encoder, member.pooling), tokenizer


STUDY = Study(
    title="Objectives of the bi-encoder",
    full=Budget(pairs=2000, evaluation=2900, epochs=3),
    design=design,
    reference_score=HEAD,
    caption=(
        "Score 'cosine': the two vectors' cosine against a threshold tuned on the validation part, "
        f"without any head; AUC: area under its ROC curve. Triplets: margin {MARGIN:g}. Duplicate "
        "first: of the evaluation questions with a labelled duplicate, the share whose nearest "
        "neighbour among all of them is one. The epoch of every arm is the one with the highest "
        "area under the ROC curve on the validation part."
    ),
)
