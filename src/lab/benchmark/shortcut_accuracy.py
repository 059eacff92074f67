"""Does the speed cost accuracy? The same training with and without most of what makes it fast.

Taken away are packing (padded batches instead), the project's own attention (PyTorch's instead),
its own dropout (PyTorch's) and the cut vocabulary (all word vectors are trained). Not taken away
are that a batch encodes each distinct question once and, where the hardware has it, bf16.
"""

from typing import Any

import numpy as np
import pandas as pd
from torch import nn

from ...config import AugmentConfig, MemberConfig, TrainingConfig
from ...data.folds import assign_folds
from ...data.graph import components, wording
from ...data.training_part import training_part
from ...models.dropout import Dropout
from ...models.registry import build_model
from ...models.transformer import TransformerEncoder
from ...report.intervals import mean_gain
from ...training.fold_model import FoldModel, fit
from ...training.loop import Conduct, train
from ...training.objective import Objective
from .ours import Ours
from .scale import Bench
from .turns import window

FAST = "as the pipeline trains"
PLAIN = "without packing, own attention, own dropout, cut vocabulary"
SEEDS = (2020, 2021, 2022)
EPOCHS, RATE = 2, 1e-4
VALID_FOLDS, VALID_PAIRS = 5, 200  # the epoch is chosen on pairs of one fold, at most so many


def accuracy(bench: Bench) -> dict[str, Any] | None:
    """Accuracy of both on dev, a seed each time with other pairs, and the difference of the means.

    No pair of dev is trained on.

    Returns:
        pairs, accuracy (by name, a value for each seed), difference of the means over the seeds,
        and its 95 % `interval` over dev's components. That is an interval for these networks, one
        of each kind for each seed; what other seeds would give is not in it. None without dev.
    """
    dev, pairs = bench.dev, bench.scale.accuracy_pairs
    if dev is None:
        return None
    no_fold = np.ones(len(bench.frame), np.int64)
    training, valid = split(training_part(bench.frame, no_fold, 0, [dev], None, AugmentConfig()))
    right: dict[str, list[np.ndarray]] = {FAST: [], PLAIN: []}
    for number, seed in enumerate(SEEDS):
        chosen = window(valid, min(VALID_PAIRS, len(valid)), number)
        for name in right:
            network = _train(name, bench, window(training, pairs, number), chosen, seed)
            right[name].append((network.predict(dev) > 0) == (dev["label"] == 1))
    fast, plain = (np.mean(right[name], axis=0) for name in (FAST, PLAIN))
    gain, *interval = mean_gain(fast - plain, components(dev, key=wording))
    return {
        "pairs": pairs,
        "accuracy": {name: [float(np.mean(one)) for one in ones] for name, ones in right.items()},
        "difference": gain,
        "interval": interval,
    }


def split(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Pairs to train on and pairs to choose an epoch by, which share no question."""
    is_valid = assign_folds(frame, VALID_FOLDS, SEEDS[0]) == 0
    return frame[~is_valid].reset_index(drop=True), frame[is_valid].reset_index(drop=True)


def _train(
    name: str, bench: Bench, rows: pd.DataFrame, valid: pd.DataFrame, seed: int
) -> FoldModel:
    encoder, settings = bench.scale.encoder, TrainingConfig(epochs=EPOCHS, encoder_lr=RATE)
    member = MemberConfig(architecture="siamese", encoder=encoder, seed=seed, training=settings)
    model, tokenizer = build_model(member, bench.pretrained, seed)
    network = FoldModel(model, tokenizer, member)
    objective, conduct = Objective.of(member), Conduct(f"seed {seed}, {name}", seed)
    if name == FAST:
        fit(network, rows, valid, objective, conduct)
    else:
        without_shortcuts(model.encoder)
        ours = Ours(member, model, tokenizer, rows)
        train(model, ours.labelled(rows), ours.labelled(valid), settings, objective, conduct)
    return network


def without_shortcuts(encoder: nn.Module) -> None:
    """As transformers builds it: padded batches, PyTorch's attention, PyTorch's dropout."""
    assert isinstance(encoder, TransformerEncoder)
    encoder.packed = False
    encoder.backbone.set_attn_implementation("sdpa")
    for module in list(encoder.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, Dropout):
                setattr(module, name, nn.Dropout(child.p))
