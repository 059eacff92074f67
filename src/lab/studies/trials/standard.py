"""What most studies start from: the official data, the profile's networks, arms of settings."""

from functools import partial
from typing import Any

import numpy as np

from ....config import AdversarialConfig, AugmentConfig, Config, MemberConfig
from ....data.pairs import read_pairs
from ....data.training_part import training_part
from ....errors import UserError
from .arm import Arm, Column, Outcome, Trial, Workplace
from .budget import Budget
from .fitted import train_member
from .split_parts import Parts, divide, hold_out

COLD = 2
HEAD = "head"  # the score of a pair by the network's own head


def official_column(place: Workplace) -> Column:
    """A fold of the official training file against the rest of it."""
    return Column("held-out fold", [place.train], partial(_hold_out, place))


def _hold_out(place: Workplace, seed: int) -> Parts:
    train = read_pairs(place.train, labelled=True).frame
    return hold_out(train, place.budget, seed)


def dev_column(place: Workplace) -> tuple[Column, list[str]]:
    """Official train → the whole of dev; where there is no dev, `official_column` and a note."""
    if place.dev is None:
        note = "There is no dev file: a fold of the training file stands in for it."
        return official_column(place), [note]
    return Column("train → dev", [place.train, place.dev], partial(_train_to_dev, place)), []


def _train_to_dev(place: Workplace, seed: int) -> Parts:
    """A pair of dev that stands in train is taken out there."""
    assert place.dev is not None  # the column is there because the file is
    train, dev = (read_pairs(path, labelled=True).frame for path in (place.train, place.dev))
    free = training_part(train, np.ones(len(train), np.int64), 0, [dev], None, AugmentConfig())
    return divide(free, dev, place.budget, seed)


def with_training(member: MemberConfig, **changes: Any) -> MemberConfig:
    """The member with other training settings."""
    return member.model_copy(update={"training": member.training.model_copy(update=changes)})


def member_arm(name: str, member: MemberConfig, reference: str) -> Arm:
    """An arm that is nothing but settings of a member."""

    def make(trial: Trial) -> Outcome:
        fitted = train_member(trial, member)
        return fitted.outcome({HEAD: fitted.predict(trial.parts.evaluation)})

    return Arm(name, {"member": member.model_dump(mode="json")}, make, reference)


def base_member(config: Config, architecture: str, budget: Budget) -> MemberConfig:
    """The profile's siamese or cross member, plain: no attack, mean pooling, (u, v, |u−v|).

    Its encoder is that of the profile's first cross-encoder, because only an encoder that gives
    every token a vector serves both architectures.

    Raises:
        UserError: the profile has no cross-encoder.
    """
    crosses = [member for member in config.members.values() if member.architecture == "cross"]
    if not crosses:
        raise UserError(
            f"A study needs an encoder that can read a pair, and profile '{config.profile}' has no "
            "cross-encoder to take it from. Use --profile small, large or tiny."
        )
    encoder = crosses[0].encoder
    like = [
        member
        for member in config.members.values()
        if member.architecture == architecture and member.encoder == encoder
    ]
    model = like[0] if like else crosses[0]
    training = model.training.model_copy(
        update={
            "epochs": budget.epochs or model.training.epochs,
            "adversarial": AdversarialConfig(),
            # Where the profile's member begins with another's weights, this one begins with the
            # pre-trained ones and has farther to go.
            "encoder_lr": model.training.encoder_lr * (COLD if model.start else 1),
        }
    )
    return MemberConfig(
        architecture=architecture,
        encoder=encoder,
        max_length=model.max_length,
        training=training,
    )
