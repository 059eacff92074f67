"""Training state between epochs, as safetensors: no pickle is ever read or written.

Every epoch draws its random numbers from (seed, epoch), so a checkpoint needs no generator state:
weights, AdamW's moments, the scale of the loss, the best weights so far and the history are enough
to continue with the same numbers as an uninterrupted run.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor, nn

from ..files import atomic_path, save_tensors


@dataclass
class Progress:
    """What is known after some epochs.

    Attributes:
        history: one row an epoch: epoch, train_loss, valid_loss, valid_accuracy.
        best: the weights of the epoch with the lowest validation loss.
        valid_logits: float64[P], that epoch's logits of the validation pairs.
    """

    history: list[dict[str, float]] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)
    valid_logits: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.float64))


def save_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    progress: Progress,
) -> None:
    """Write the whole training state to `path`, atomically."""
    tensors = {f"model/{name}": values for name, values in model.state_dict().items()}
    tensors |= {f"best/{name}": values for name, values in progress.best.items()}
    tensors["valid_logits"] = progress.valid_logits
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for parameter, state in optimizer.state.items():
        for key, values in state.items():
            tensors[f"optimizer/{names[id(parameter)]}/{key}"] = values
    whole = {name: values.detach().contiguous() for name, values in tensors.items()}
    with atomic_path(path) as temporary:
        about = {"history": progress.history, "scaler": scaler.state_dict()}
        save_tensors(whole, temporary, {key: json.dumps(value) for key, value in about.items()})


def load_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
) -> Progress | None:
    """Put the state of `path` back; None when there is no checkpoint."""
    if not path.is_file():
        return None
    with safe_open(path, framework="pt") as file:
        history, state = (json.loads(file.metadata()[key]) for key in ("history", "scaler"))
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    if state:
        scaler.load_state_dict(state)
    model.load_state_dict(under("model/", tensors))
    for name, parameter in model.named_parameters():
        state = under(f"optimizer/{name}/", tensors)
        if state:
            # Fused AdamW counts its steps on the parameter's device, too.
            optimizer.state[parameter] = {
                key: values.to(parameter.device) for key, values in state.items()
            }
    return Progress(history, under("best/", tensors), tensors["valid_logits"])


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with `prefix`, without it."""
    return {
        name.removeprefix(prefix): values
        for name, values in tensors.items()
        if name.startswith(prefix)
    }
