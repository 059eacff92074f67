"""Whether a training has learned anything; if not, it is repeated once with other settings."""

import numpy as np
import pandas as pd
from accelerate.utils import broadcast_object_list
from scipy.stats import binomtest

from ..config import MemberConfig
from ..data.graph import components, wording

CONSTANT = ("always answering 'different'", "always answering 'the same'")  # by label


def has_learned(own: pd.DataFrame, logits: np.ndarray, majority: int) -> bool:
    """Whether a fold's own rows are decided better than by one answer to everything.

    A sign test over connected components of questions: the network is more often right than that
    answer in more of them than the other way round (one-sided, 5 %). In all processes of a launch
    the first one's verdict counts.

    Args:
        own: pair frame of the fold's own rows; logits: float64[P].
        majority: the more frequent label of what was trained on.
    """
    labels = own["label"].to_numpy()
    gain = ((logits > 0) == (labels == 1)).astype(int) - (labels == majority)
    total = np.bincount(components(own, key=wording), weights=gain)
    better, worse = int((total > 0).sum()), int((total < 0).sum())
    chance = binomtest(better, better + worse, alternative="greater").pvalue if better else 1.0
    verdict = [bool(chance < 0.05)]
    broadcast_object_list(verdict)
    return verdict[0]


def once_more(member: MemberConfig) -> MemberConfig:
    """The member for a second attempt: another seed, half the learning rates."""
    rates = {name: getattr(member.training, name) / 2 for name in ("encoder_lr", "head_lr")}
    training = member.training.model_copy(update=rates)
    return member.model_copy(update={"seed": member.seed + 1, "training": training})
