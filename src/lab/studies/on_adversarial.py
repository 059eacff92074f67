"""Adversarial training: does it help, what does it cost, and is it more than noise?

FGM (Miyato et al. 2017) and PGD (Madry et al. 2018) at several radii ε, and random noise of the
same norm, which tells the benefit of the adversary's direction from that of any perturbation. Each
trained network is scored on the evaluation pairs as they are, under an attack on its word
embeddings, and after small edits of the second question.
"""

import numpy as np
import pandas as pd

from ...config import AdversarialConfig, MemberConfig
from ...data.graph import wording
from .robustness.attack import attacked_logits
from .robustness.edits import EDITS
from .trials.arm import Arm, Design, Outcome, Study, Trial, Workplace
from .trials.budget import FIRST_SEED, Budget
from .trials.fitted import train_member
from .trials.standard import base_member, official_column, with_training

REFERENCE = "none"
RADII = (0.2, 0.6, 2.0)  # of training, in lengths of a word vector
ATTACK_RADIUS = 1.0  # of the attack on a trained network, in the embeddings' own units


def settings() -> dict[str, AdversarialConfig]:
    """Arm → how it perturbs."""
    found = {REFERENCE: AdversarialConfig()}
    for radius in RADII:
        for method in ("noise", "fgm", "pgd"):
            found[f"{method.upper() if method != 'noise' else method} ε={radius:g}"] = (
                AdversarialConfig(method=method, epsilon=radius, steps=3)
            )
    return found


def design(place: Workplace) -> Design:
    """No perturbation, and every method at every radius."""
    base = base_member(place.config, "siamese", place.budget)
    arms = [
        _arm(name, with_training(base, adversarial=adversarial))
        for name, adversarial in settings().items()
    ]
    return Design(arms, [official_column(place)])


def _arm(name: str, member: MemberConfig) -> Arm:
    def make(trial: Trial) -> Outcome:
        fitted = train_member(trial, member)
        evaluation = trial.parts.evaluation
        scores = {
            "clean": fitted.predict(evaluation),
            "attacked embeddings": attacked_logits(fitted, evaluation, ATTACK_RADIUS),
        }
        for edit, change in EDITS.items():
            scores[edit] = fitted.predict(edited(evaluation, change))
        return fitted.outcome(scores)

    recorded = {"member": member.model_dump(mode="json"), "attack_radius": ATTACK_RADIUS}
    return Arm(name, recorded, make, REFERENCE)


def edited(frame: pd.DataFrame, change) -> pd.DataFrame:
    """The pairs with their second question changed, each by its own random numbers.

    What is drawn depends on the question alone: it is changed in the same way for every arm and
    wherever it stands.
    """
    queries = [
        change(text, np.random.default_rng([FIRST_SEED, *wording(text).encode()]))
        for text in frame["query2"]
    ]
    return frame.assign(query2=queries)


STUDY = Study(
    title="Adversarial training: accuracy, cost and robustness",
    full=Budget(pairs=800, evaluation=800, epochs=2),
    design=design,
    caption=(
        "ε is in mean lengths of a word vector. "
        f"Attack on the trained network: PGD, 3 steps within a radius of {ATTACK_RADIUS:g} a batch "
        "of 64 pairs, with the true labels. Edits change one place of the second question. Cost: "
        "training seconds as a multiple of the reference's."
    ),
)
