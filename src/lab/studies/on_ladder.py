"""The public leaderboard's ladder: what is each of its steps worth, alone and with evidence?

The steps of the public solutions, as settings of this code. Each rung is compared with the one
below it, on dev. The first three rungs are encoders, which only `--profile large` can tell apart;
with one encoder they are one rung. The scores in the names were published for the hidden test.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from torch import Tensor, nn, stack

from ...config import AdversarialConfig, MemberConfig
from ...data.folds import assign_folds
from ...models.api import PairModel, Tokenizer
from ...models.registry import build_model
from .small_batches import NOTE, small_batch_member
from .trials.arm import Arm, Design, Outcome, Study, Trial, Workplace
from .trials.budget import Budget
from .trials.fitted import train_member
from .trials.standard import HEAD, dev_column, member_arm, with_training

ENCODERS = {
    "BERT-base (public: 94.45 %)": "google-bert/bert-base-chinese",
    "ERNIE (public: 95.08 %)": "nghuyong/ernie-1.0-base-zh",
}
ATTACKS = {"fgm": "+ FGM (public: 96.10 %)", "pgd": "+ PGD (public: 96.30 %)"}
SMOOTHING = 0.05
SAMPLES = 5  # of dropout
FOLDS, FOLDS_OF_SAMPLE = 7, 3


def design(place: Workplace) -> Design:
    """The cross-encoder's rungs, then fold models of both architectures and their mean."""
    cross, siamese = (
        with_training(small_batch_member(place.config, name, place.budget), label_smoothing=0.0)
        for name in ("cross", "siamese")
    )
    is_large = place.config.profile == "large"
    rungs = {
        name: cross.model_copy(update={"encoder": encoder})
        for name, encoder in (ENCODERS if is_large else {}).items()
    }
    rungs[f"{'RoBERTa-large' if is_large else 'cross-encoder'} (public: 95.82 %)"] = cross
    for method, name in ATTACKS.items():
        rungs[name] = with_training(cross, adversarial=AdversarialConfig(method=method))
    names = list(rungs)
    below = dict(zip(names, names[:1] + names, strict=False))
    folds = FOLDS_OF_SAMPLE if place.budget.pairs else FOLDS
    column, notes = dev_column(place)
    return Design(
        [
            *(member_arm(name, member, below[name]) for name, member in rungs.items()),
            _recipe(rungs[ATTACKS["fgm"]], siamese, folds, below=names[-1]),
        ],
        [column],
        notes,
    )


def _recipe(cross: MemberConfig, siamese: MemberConfig, folds: int, below: str) -> Arm:
    """What the winners add: fold models whose logits are averaged, and both architectures."""
    attack = cross.training.adversarial
    members = {
        HEAD: with_training(cross, label_smoothing=SMOOTHING),
        "siamese": with_training(siamese, label_smoothing=SMOOTHING, adversarial=attack),
    }

    def make(trial: Trial) -> Outcome:
        training, evaluation = trial.parts.training, trial.parts.evaluation
        fold = assign_folds(training, folds, trial.seed)
        logits: dict[str, list[np.ndarray]] = {name: [] for name in members}
        parameters, seconds, failed = 0, 0.0, 0.0
        for name, member in members.items():
            for number in range(folds):
                one = replace(trial, title=f"{trial.title}, {name} fold {number}")
                rest = training[fold != number].reset_index(drop=True)
                fitted = train_member(one, member, training=rest, build=build_multi_sample)
                logits[name].append(fitted.predict(evaluation))
                parameters += fitted.parameters
                seconds += fitted.seconds
                failed += fitted.failed / (folds * len(members))
        scores = {name: np.mean(found, axis=0) for name, found in logits.items()}
        scores["both"] = np.mean(list(scores.values()), axis=0)
        facts = {"train_seconds": seconds, "parameters": parameters, "failed": failed}
        return Outcome(scores, training, fitted.history, facts)

    settings = {
        "member": cross.model_dump(mode="json"),
        "members": {name: member.model_dump(mode="json") for name, member in members.items()},
        "folds": folds,
        "samples": SAMPLES,
    }
    return Arm(
        f"+ {folds} folds, smoothing, multi-sample dropout",
        settings,
        make,
        below,
        within={"siamese": HEAD, "both": HEAD},
    )


class MultiSampleHead(nn.Module):
    """Multi-sample dropout (Inoue 2019): the mean logit of a head under several dropout masks."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, vectors: Tensor) -> Tensor:
        """Logits [N, 1] of vectors [N, H]."""
        samples = SAMPLES if self.training else 1
        return stack([self.head(vectors) for _ in range(samples)]).mean(0)


def build_multi_sample(
    member: MemberConfig, pretrained: Path, seed: int
) -> tuple[PairModel, Tokenizer]:
    """`build_model`, its head under a `MultiSampleHead`."""
    model, tokenizer = build_model(member, pretrained, seed)
    model.head = MultiSampleHead(model.head)  # type: ignore[arg-type]  # both architectures have one
    return model, tokenizer


STUDY = Study(
    title="The public ladder, rung by rung",
    full=Budget(pairs=1000, evaluation=2000, epochs=3),
    design=design,
    caption=(
        "Every rung is compared with the one above it in the table; of the last arm, 'siamese' and "
        "'both' are compared with its 'head', the cross-encoder. The last arm has FGM in both "
        "architectures. Public: accuracy on the hidden test, with the competition's encoders and "
        f"all pairs. {NOTE}"
    ),
)
