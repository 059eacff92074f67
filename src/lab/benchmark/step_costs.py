"""What a training step is made of: the encoder's work, the update, and an attack's extra cost."""

from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from ...config import TrainingConfig
from ...training.batches import epoch_batches
from ...training.loop import autocast
from ...training.objective import Objective
from ...training.optimizer import make_optimizer
from ...training.step import accumulate_gradient
from .contest import window
from .hardware import flop_per_token, product_peak
from .ours import Own
from .turns import Spread, alternate, now

ATTACKS = ("none", "fgm", "pgd")


def attack_costs(
    own: Own, frame: pd.DataFrame, pairs: int, precision: str, rounds: int
) -> dict[str, dict[str, float]]:
    """An epoch under FGM and under PGD with three steps, as a multiple of a clean epoch."""
    turns = {
        attack: lambda number, attack=attack: (
            own.train(window(frame, pairs, number), precision, attack).seconds
        )
        for attack in ATTACKS
    }
    seconds = alternate(turns, rounds, "attacks")
    clean = np.array(seconds["none"])
    return {name: asdict(Spread.of(seconds[name] / clean)) for name in ATTACKS[1:]}


def step_parts(
    own: Own, frame: pd.DataFrame, precision: str, rounds: int
) -> dict[str, dict[str, float]]:
    """One batch, over and over.

    Returns:
        Spreads of `encoder_share_of_peak`: FLOP a second of the encoder's forward and backward
        pass, of those of a matrix product measured in the same round; and of `update_share`:
        clipping and AdamW, of the whole step.
    """
    step = _Step(own, frame, precision)
    device = own.model.encoder.word_embeddings.weight.device
    with own.cut_vocabulary():
        step.optimizer = make_optimizer(own.model, own.model.encoder, step.settings)
        turns = {
            "peak": lambda _: product_peak(precision, device),
            "encoder": partial(_timed, step.encoder),
            "gradient": partial(_timed, step.gradient),
            "update": partial(_timed, step.update),
        }
        found = {name: np.array(v) for name, v in alternate(turns, rounds, "parts").items()}
    flop = flop_per_token(own.model.encoder, training=True) * len(step.tokens.ids)
    return {
        "encoder_share_of_peak": asdict(Spread.of(flop / found["encoder"] / found["peak"])),
        "update_share": asdict(Spread.of(found["update"] / (found["gradient"] + found["update"]))),
    }


def _timed(part, _: int) -> float:
    started = now()
    part()
    return now() - started


class _Step:
    """The parts of a step as `training.loop.train` puts them together."""

    optimizer: torch.optim.Optimizer

    def __init__(self, own: Own, frame: pd.DataFrame, precision: str) -> None:
        self.settings = TrainingConfig(precision=precision)
        self.accelerator = Accelerator(mixed_precision="no")
        self.model = own.model
        device = self.accelerator.device
        pairs = own.read(frame)
        rng = np.random.default_rng(0)
        rows = epoch_batches(pairs.groups, pairs.lengths, self.settings.batch_pairs, rng)[0]
        self.batch: Any = pairs.collate(rows, np.zeros(len(rows), bool)).to(device)
        self.labels = torch.from_numpy(frame["label"].to_numpy(np.float32)[rows]).to(device)
        self.objective = Objective(self.settings.label_smoothing)
        is_siamese = own.member.architecture == "siamese"
        self.tokens = self.batch.questions if is_siamese else self.batch.sequences

    def encoder(self) -> None:
        """Forward and backward through the encoder alone."""
        self.model.train()
        with autocast(self.accelerator.device, self.settings.precision):
            hidden = self.model.encoder(self.tokens)
        hidden.backward(torch.ones_like(hidden))
        self.model.zero_grad(set_to_none=True)

    def gradient(self) -> None:
        """Everything up to the gradient."""
        self.model.train()
        accumulate_gradient(
            self._loss,
            self.model,
            self.model.encoder.word_embeddings,
            self.settings.adversarial,
            self.accelerator,
        )

    def update(self) -> None:
        """Everything after it."""
        self.accelerator.clip_grad_norm_(self.model.parameters(), self.settings.clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def _loss(self, network: nn.Module) -> Tensor:
        with autocast(self.accelerator.device, self.settings.precision):
            scored = network(self.batch)
        return self.objective(scored, self.batch, self.labels) / len(self.labels)
