"""AdamW with a learning rate for the head, one for the encoder, and decay where it belongs."""

from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler
from transformers import get_linear_schedule_with_warmup

from ..config import TrainingConfig
from ..models.api import PairModel


def parameter_groups(model: PairModel, settings: TrainingConfig) -> list[dict[str, Any]]:
    """Groups for AdamW: the head, and the encoder's layers from top to bottom.

    The encoder's learning rate shrinks by `layer_decay` for every layer further down, the
    embeddings last (Howard & Ruder 2018, section 3.2). Biases and layer norms, which are the
    parameters of one dimension, are not decayed (Loshchilov & Hutter 2019).
    """
    encoder = model.encoder
    depth: dict[int, int] = {}
    layers = encoder.layers
    for index, layer in enumerate(layers):
        depth.update({id(p): len(layers) - 1 - index for p in layer.parameters()})
    inside = {id(p): depth.get(id(p), len(layers)) for p in encoder.parameters()}
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for parameter in model.parameters():
        if not parameter.requires_grad:
            continue
        rate = settings.head_lr
        if id(parameter) in inside:
            rate = settings.encoder_lr * settings.layer_decay ** inside[id(parameter)]
        decay = settings.weight_decay if parameter.ndim > 1 else 0.0
        groups.setdefault((rate, decay), []).append(parameter)
    return [
        {"params": parameters, "lr": rate, "weight_decay": decay}
        for (rate, decay), parameters in groups.items()
    ]


def make_optimizer(model: PairModel, settings: TrainingConfig) -> torch.optim.AdamW:
    """AdamW (Loshchilov & Hutter 2019) over `parameter_groups`."""
    return torch.optim.AdamW(parameter_groups(model, settings), fused=True)


def linear_schedule(
    optimizer: torch.optim.Optimizer, done: int, steps: int, warmup: float
) -> LRScheduler:
    """Learning rate up over the first `warmup` share of the steps, then down to 0.

    Args:
        done: optimizer steps that have been taken before.
        steps: in all.
    """
    for group in optimizer.param_groups:
        group.setdefault("initial_lr", group["lr"])
    rising = max(1, round(warmup * steps))
    # transformers' schedule begins with a step at rate 0, which would be lost: it is entered at
    # its second one.
    return get_linear_schedule_with_warmup(optimizer, rising + 1, steps + 1, last_epoch=done)
