"""Does the speed cost accuracy? The same training with and without most of what makes it fast.

Taken away are packing (padded batches instead), the project's own attention (PyTorch's instead),
its own dropout (PyTorch's) and the cut vocabulary (all word vectors are trained). Not taken away
are that a batch encodes each distinct question once and, where the hardware has it, bf16.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch import nn

from ...config import AugmentConfig, MemberConfig
from ...data.folds import assign_folds
from ...data.graph import components, wording
from ...data.training_part import training_part
from ...models.dropout import Dropout
from ...models.registry import build_model, read_for
from ...report.intervals import mean_gain
from ...training.loop import train
from ...training.member import fit, predict
from ...training.objective import Objective
from .contest import window

FAST = "as the pipeline trains"
PLAIN = "without packing, own attention, own dropout, cut vocabulary"
SEEDS = (2020, 2021, 2022)
EPOCHS, RATE = 2, 1e-4
VALID_FOLDS, VALID_PAIRS = 5, 200  # the epoch is chosen on pairs of one fold, at most so many


def accuracy(
    encoder: str, train_frame: pd.DataFrame, dev: pd.DataFrame, pairs: int, pretrained: Path
) -> dict[str, Any]:
    """Accuracy of both on dev, a seed each time with other pairs, and the difference of the means.

    Args:
        pairs: that a seed trains on; no pair of dev is among them.

    Returns:
        pairs, accuracy (by name, a value for each seed), difference of the means over the seeds,
        and its 95 % `interval` over dev's components. That is an interval for these networks, one
        of each kind for each seed; what other seeds would give is not in it.
    """
    free = training_part(
        train_frame, np.ones(len(train_frame), np.int64), 0, [dev], None, AugmentConfig()
    )
    training, valid = split(free)
    labels = dev["label"].to_numpy()
    right: dict[str, list[np.ndarray]] = {FAST: [], PLAIN: []}
    for number, seed in enumerate(SEEDS):
        chosen = window(valid, min(VALID_PAIRS, len(valid)), number)
        parts = window(training, pairs, number), chosen
        for name in right:
            logits = _train(name == PLAIN, encoder, *parts, seed, pretrained, dev)
            right[name].append((logits > 0) == (labels == 1))
    fast, plain = (np.mean(right[name], axis=0) for name in (FAST, PLAIN))
    return {
        "pairs": pairs,
        "accuracy": {name: [float(np.mean(one)) for one in ones] for name, ones in right.items()},
        "difference": float(np.mean(fast - plain)),
        "interval": list(mean_gain(fast - plain, components(dev, key=wording))[1:]),
    }


def split(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pairs to train on and pairs to choose an epoch by, which share no question."""
    is_valid = assign_folds(frame, VALID_FOLDS, SEEDS[0]) == 0
    return frame[~is_valid].reset_index(drop=True), frame[is_valid].reset_index(drop=True)


def _train(
    is_plain: bool,
    encoder: str,
    rows: pd.DataFrame,
    valid: pd.DataFrame,
    seed: int,
    pretrained: Path,
    dev: pd.DataFrame,
) -> np.ndarray:
    """Logits of dev."""
    member = MemberConfig(architecture="siamese", encoder=encoder, seed=seed)
    settings = member.training.model_copy(update={"epochs": EPOCHS, "encoder_lr": RATE})
    member = member.model_copy(update={"training": settings})
    model, tokenizer = build_model(member, pretrained, seed)
    title = PLAIN if is_plain else FAST
    objective = Objective(settings.label_smoothing)
    common = {"swap": 0.0, "seed": seed, "checkpoint": None, "title": f"seed {seed}, {title}"}
    if is_plain:
        without_shortcuts(model.encoder)
        read = [read_for(member, frame, tokenizer) for frame in (rows, valid)]
        answers = [frame["label"].to_numpy() for frame in (rows, valid)]
        train(model, read[0], answers[0], read[1], answers[1], settings, objective, **common)
    else:
        fit(model, tokenizer, member, rows, valid, objective, **common)
    return predict(model, tokenizer, member, dev)


def without_shortcuts(encoder: nn.Module) -> None:
    """As transformers builds it: padded batches, PyTorch's attention, PyTorch's dropout."""
    encoder.packed = False
    encoder.backbone.set_attn_implementation("sdpa")
    for module in list(encoder.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, Dropout):
                setattr(module, name, nn.Dropout(child.p))
