"""AdamW with a learning rate for the head, one for the encoder, and decay where it belongs."""

import torch
from torch import nn

from ..config import TrainingConfig
from ..models.encoder import Encoder


def parameter_groups(
    model: nn.Module, encoder: Encoder, settings: TrainingConfig
) -> list[dict[str, object]]:
    """Groups for AdamW: the head, and the encoder's layers from top to bottom.

    The encoder's learning rate shrinks by `layer_decay` for every layer further down, the
    embeddings last (Howard & Ruder 2018, section 3.2). Biases and layer norms, which are the
    parameters of one dimension, are not decayed (Loshchilov & Hutter 2019).
    """
    depth = {}
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


def make_optimizer(model: nn.Module, encoder: Encoder, settings: TrainingConfig):
    """AdamW (Loshchilov & Hutter 2019) over `parameter_groups`."""
    return torch.optim.AdamW(parameter_groups(model, encoder, settings), fused=True)


def linear_schedule(step: int, steps: int, warmup: float) -> float:
    """Learning rate factor: up from 0 over the first `warmup` share of the steps, down to 0."""
    rising = max(1, round(warmup * steps))
    if step < rising:
        return (step + 1) / (rising + 1)
    return max(0.0, (steps - step) / max(1, steps - rising))
