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
        works = race(turns, bench.scale.rounds, f"attacks, {name}")
        clean = works.pop("none")["seconds"]
        costs[name] = {attack: spread(work["seconds"] / clean) for attack, work in works.items()}
    return costs


def step_parts(bench: Bench) -> Costs:
    """By architecture: one batch, over and over.

    Returns:
        Spreads of `encoder_share_of_peak`: FLOP a second of the encoder's forward and backward
        pass, of those of a matrix product measured in the same round; and of `update_share`:
        clipping and AdamW, of the whole step.
    """
    found: Costs = {}
    for name, ours in bench.ours.items():
        ours.model.precision = bench.fastest
        with ours.cut_vocabulary():
            parts, tokens = _parts(ours)
            turns = {part: _seconds(call) for part, call in parts.items()}
            turns["peak"] = partial(product_peak, bench.fastest, bench.device)
            rounds = alternate(turns, bench.scale.rounds, f"parts, {name}")
        encoder, gradient, update, peak = (np.array(values) for values in rounds.values())
        flop = flop_per_token(ours.model.encoder, training=True) * tokens
        found[name] = {
            "encoder_share_of_peak": spread(flop / encoder / peak),
            "update_share": spread(update / (gradient + update)),
        }
    return found


def _seconds(call: Callable[[], None]) -> Turn[float]:
    return lambda _: timed(call)[1]


def _parts(ours: Ours) -> tuple[dict[str, Callable[[], None]], int]:
    """The parts of a step as `training.loop.train` puts them together, and the batch's tokens."""
    model, settings = ours.model.train(), ours.member.training
    accelerator, optimizer = Accelerator(mixed_precision="no"), make_optimizer(model, settings)
    data, rng = ours.labelled(ours.frame), np.random.default_rng(0)
    rows = epoch_batches(data.pairs.groups, data.pairs.lengths, settings.batch_pairs, rng)[0]
    batch = data.pairs.collate(rows, np.zeros(len(rows), bool)).to(model.device)
    labels = torch.from_numpy(data.labels[rows].astype(np.float32)).to(model.device)
    objective, words = Objective.of(ours.member), model.encoder.word_embeddings

    def encoder() -> None:
        with autocast(model.device, model.precision):
            hidden = model.encoder(batch.tokens)
        hidden.backward(torch.ones_like(hidden))
        model.zero_grad(set_to_none=True)

    def loss(network: nn.Module) -> Tensor:
        return objective(network(batch), batch, labels) / len(labels)

    def gradient() -> None:
        accumulate_gradient(loss, model, words, settings.adversarial, accelerator)

    def update() -> None:
        accelerator.clip_grad_norm_(model.parameters(), settings.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    parts = {"encoder": encoder, "gradient": gradient, "update": update}
    return parts, len(batch.tokens.ids)
