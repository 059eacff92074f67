"""What a training step is made of: the encoder's work, the update, and an attack's extra cost."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from ...models.precision import autocast
from ...training.adversarial import accumulate_gradient
from ...training.batches import epoch_batches
from ...training.objective import Objective
from ...training.optimizer import make_optimizer
from .hardware import flop_per_token, product_peak
from .ours import Attack, Ours
from .scale import Bench
from .turns import Spread, Turn, Work, alternate, race, spread, timed, turn

ATTACKS: tuple[Attack, ...] = ("none", "fgm", "pgd")
Costs = dict[str, dict[str, Spread]]  # by architecture


def attack_turns(ours: Ours, bench: Bench, pairs: int) -> dict[str, Turn[Work]]:
    """An epoch without attack, under FGM and under PGD with three steps."""
    return {
        attack: turn(partial(ours.train, attack=attack), bench.frame, pairs, bench.fastest)
        for attack in ATTACKS
    }


def attack_costs(bench: Bench) -> Costs:
    """By architecture: an epoch under each attack, as a multiple of a clean epoch."""
    costs: Costs = {}
    for name, ours in bench.ours.items():
        turns = attack_turns(ours, bench, bench.scale.train_pairs // 2)
        seconds = {k: work["seconds"] for k, work in race(turns, bench.scale.rounds, name).items()}
        costs[name] = {attack: spread(seconds[attack] / seconds["none"]) for attack in ATTACKS[1:]}
    return costs


def step_parts(bench: Bench) -> Costs:
    """By architecture: one batch, over and over.

    Returns:
        Spreads of `encoder_share_of_peak`: FLOP a second of the encoder's forward and backward
        pass, of those of a matrix product measured in the same round; and of `update_share`:
        clipping and AdamW, of the whole step.
    """
    found = {}
    for name, ours in bench.ours.items():
        ours.model.precision = bench.fastest
        ours.model.train()
        with ours.cut_vocabulary():
            parts, tokens = _parts(ours)
            turns = {part: _timed(call) for part, call in parts.items()}
            turns["peak"] = partial(product_peak, bench.fastest, bench.device)
            each = alternate(turns, bench.scale.rounds, f"parts, {name}")
        encoder, gradient, update, peak = (np.array(seconds) for seconds in each.values())
        flop = flop_per_token(ours.model.encoder, training=True) * tokens
        found[name] = {
            "encoder_share_of_peak": spread(flop / encoder / peak),
            "update_share": spread(update / (gradient + update)),
        }
    return found


def _timed(call: Callable[[], None]) -> Turn[float]:
    return lambda _: timed(call)[1]


def _parts(ours: Ours) -> tuple[dict[str, Callable[[], None]], int]:
    """The parts of a step as `training.loop.train` puts them together, and the batch's tokens."""
    model, settings = ours.model, ours.member.training
    accelerator = Accelerator(mixed_precision="no")
    pairs, rng = ours.read(ours.frame), np.random.default_rng(0)
    rows = epoch_batches(pairs.groups, pairs.lengths, settings.batch_pairs, rng)[0]
    batch = pairs.collate(rows, np.zeros(len(rows), bool)).to(model.device)
    goals = ours.frame["label"].to_numpy(np.float32)[rows]
    labels, objective = torch.from_numpy(goals).to(model.device), Objective.of(ours.member)
    optimizer = make_optimizer(model, settings)

    def encoder() -> None:
        """Forward and backward through the encoder alone."""
        with autocast(model.device, model.precision):
            hidden = model.encoder(batch.tokens)
        hidden.backward(torch.ones_like(hidden))
        model.zero_grad(set_to_none=True)

    def loss(network: nn.Module) -> Tensor:
        return objective(network(batch), batch, labels) / len(labels)

    def gradient() -> None:
        words = model.encoder.word_embeddings
        accumulate_gradient(loss, model, words, settings.adversarial, accelerator)

    def update() -> None:
        accelerator.clip_grad_norm_(model.parameters(), settings.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    parts = {"encoder": encoder, "gradient": gradient, "update": update}
    return parts, len(batch.tokens.ids)
