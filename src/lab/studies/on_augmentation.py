"""More training pairs: swap, transitive closure, entity replacement, pairs from elsewhere.

Whatever is added is made of the training part alone or screened against validation and evaluation
(data/training_part.py). External pairs are added all alike, or only those that a network trained
without them finds uncertain, because what it is sure of it cannot learn much from (uncertainty
sampling, Lewis & Gale 1994).
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from ...config import AugmentConfig, MemberConfig
from ...data.audit import new_question_rows
from ...data.pairs import csv_text, read_pairs
from ...data.training_part import training_part
from ...files import read_json, write_json
from ...models.registry import code_of_member
from ...step import Step
from .trials.arm import Arm, Design, Outcome, Study, Trial, Workplace
from .trials.budget import Budget
from .trials.fitted import train_member
from .trials.split_parts import sample_groups
from .trials.standard import HEAD, base_member, official_column, with_training

UNCERTAIN = (0.2, 0.8)  # probabilities between which a pair is uncertain
UNCERTAIN_ROWS = "uncertain.json"
CANDIDATES = 3  # external pairs asked about for each training pair


@dataclass(frozen=True)
class Recipe:
    """What is added to the training part. Ratios are relative to its pairs.

    `external` adds as many pairs as the training part has, drawn from all that share no question
    with validation and evaluation, or from the uncertain ones among them (all of these, where
    they are fewer). `longer` is times the epochs: what more updates are worth without new pairs. (A
    second copy of the pairs would be another thing for the bi-encoder: pairs with a common first
    question share a batch, so both copies would, and a step would see half as many different ones.)
    """

    longer: int = 1
    swap: float = 0.0
    closure: float = 0.0
    entity: float = 0.0
    external: Literal["none", "all", "uncertain"] = "none"


TOGETHER: dict[str, Any] = {"closure": 0.5, "entity": 0.5, "external": "uncertain"}
SIAMESE = {
    "siamese": Recipe(),
    "siamese, twice the epochs": Recipe(longer=2),
    "siamese + closure 0.5": Recipe(closure=0.5),
    "siamese + closure 1": Recipe(closure=1.0),
    "siamese + entities 0.5": Recipe(entity=0.5),
    "siamese + external, all": Recipe(external="all"),
    "siamese + external, uncertain": Recipe(external="uncertain"),
    "siamese + all of these": Recipe(**TOGETHER),
}
# Only a cross-encoder sees the order of a pair.
CROSS = {
    "cross": Recipe(),
    "cross + swap, twice the epochs": Recipe(swap=0.5, longer=2),
    "cross + swap": Recipe(swap=0.5),
    "cross + swap + all of these": Recipe(swap=0.5, **TOGETHER),
}


def design(place: Workplace) -> Design:
    """Each augmentation alone and all together, in the architecture that it concerns."""
    external = place.config.data.external or place.beside_data("external", "chip2019.csv")
    arms, left_out = [], []
    for architecture, recipes in (("siamese", SIAMESE), ("cross", CROSS)):
        for name, recipe in recipes.items():
            if external is None and recipe.external != "none":
                left_out.append(name)
                continue
            arms.append(_arm(place, name, architecture, recipe, external))
    notes = []
    if left_out:
        notes.append(
            f"Left out, because there is no external/chip2019.csv in or beside "
            f"{place.train.parent} and no data.external: {'; '.join(left_out)}."
        )
    return Design(arms, [official_column(place)], notes)


def _arm(
    place: Workplace, name: str, architecture: str, recipe: Recipe, external: Path | None
) -> Arm:
    judge = base_member(place.config, "siamese", place.budget)
    base = base_member(place.config, architecture, place.budget)
    member = with_training(base, epochs=recipe.longer * base.training.epochs)

    source = external if recipe.external != "none" else None

    def make(trial: Trial) -> Outcome:
        more = None
        if source:
            more = _external(place, trial, judge, recipe.external, source)
        training = augmented(trial, recipe, more)
        fitted = train_member(trial, member, training=training, swap=recipe.swap)
        return fitted.outcome({HEAD: fitted.predict(trial.parts.evaluation)})

    settings: dict[str, Any] = {
        "member": member.model_dump(mode="json"),
        "judge": judge.model_dump(mode="json"),
        "recipe": vars(recipe),
    }
    return Arm(name, settings, make, architecture, [source] if source else [])


def augmented(trial: Trial, recipe: Recipe, external: pd.DataFrame | None) -> pd.DataFrame:
    """The trial's training part with what the recipe adds to it."""
    training = trial.parts.training
    return training_part(
        training,
        np.ones(len(training), np.int64),  # no row of it is held out
        0,
        [trial.parts.validation, trial.parts.evaluation],
        external,
        AugmentConfig(closure=recipe.closure, entity=recipe.entity, seed=trial.seed),
    )


def _external(
    place: Workplace, trial: Trial, judge: MemberConfig, which: str, source: Path
) -> pd.DataFrame:
    """As many external pairs as the trial's training part has."""
    pairs = len(trial.parts.training)
    held_out = pd.concat([trial.parts.validation, trial.parts.evaluation])
    external = read_pairs(source, labelled=True).frame
    external = external[new_question_rows(held_out, external)].reset_index(drop=True)
    candidates = sample_groups(external, CANDIDATES * pairs, trial.seed)
    if which == "uncertain":
        candidates = _uncertain(place, trial, judge, candidates)
    return sample_groups(candidates, pairs, trial.seed)


def _uncertain(
    place: Workplace, trial: Trial, judge: MemberConfig, candidates: pd.DataFrame
) -> pd.DataFrame:
    """The uncertain candidates, asked once a seed and kept for all arms that want them."""

    step = Step(
        f"external pairs that are uncertain, seed {trial.seed}",
        place.work / "uncertain" / f"seed{trial.seed}",
        partial(_write_uncertain, trial, judge, candidates),
        settings={
            "judge": judge.model_dump(mode="json"),
            "seed": trial.seed,
            "training": _text(trial.parts.training),
            "validation": _text(trial.parts.validation),
            "candidates": _text(candidates),
        },
        code=code_of_member(judge),
    )
    step.run()
    return candidates.iloc[read_json(step.folder / UNCERTAIN_ROWS)].reset_index(drop=True)


def _write_uncertain(
    trial: Trial, judge: MemberConfig, candidates: pd.DataFrame, folder: Path
) -> None:
    logits = train_member(trial, judge).predict(candidates)
    write_json(folder / UNCERTAIN_ROWS, np.flatnonzero(is_uncertain(logits)).tolist())


def _text(frame: pd.DataFrame) -> str:
    return csv_text(frame.itertuples(index=False))


def is_uncertain(logits: np.ndarray) -> np.ndarray:
    """bool[P]: the probability lies strictly between the two of `UNCERTAIN`."""
    probabilities = np.exp(-np.logaddexp(0.0, -logits))
    return (probabilities > UNCERTAIN[0]) & (probabilities < UNCERTAIN[1])


STUDY = Study(
    title="Augmentation, each alone and together",
    full=Budget(pairs=1200, evaluation=1500, epochs=2),
    design=design,
    caption=(
        "Ratios are relative to the training pairs; external pairs are at most as many as these. "
        "More pairs are more updates, too: twice the epochs has as many without any new pair. "
        "Swap exists for the cross-encoder only: a siamese network does not see the order."
    ),
)
