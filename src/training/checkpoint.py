"""Training state between epochs, as safetensors: no pickle is ever read or written.

Every epoch draws its random numbers from (seed, epoch), so a checkpoint needs no generator state:
weights, AdamW's moments, the scale of the loss and the history are enough to continue with the same
numbers as an uninterrupted run. The moments are kept in bf16, so that a checkpoint is twice as
large as the weights and not three times.
"""

import json
from pathlib import Path

import torch
from safetensors import safe_open
from torch import Tensor, nn

from ..files import atomic_path, save_tensors

# One row an epoch: epoch, train_loss, valid_loss, valid_accuracy.
History = list[dict[str, float]]

_MOMENTS = ("exp_avg", "exp_avg_sq")


def round_moments(optimizer: torch.optim.Optimizer) -> None:
    """Round AdamW's moments to what a checkpoint holds of them."""
    for state in optimizer.state.values():
        for name in _MOMENTS:
            state[name].copy_(state[name].bfloat16())


def save_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    history: History,
) -> None:
    """Write the training state to `path`, atomically; the moments have been rounded."""
    tensors = {f"model/{name}": values for name, values in model.state_dict().items()}
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for parameter, state in optimizer.state.items():
        for key, values in state.items():
            stored = values.bfloat16() if key in _MOMENTS else values
            tensors[f"optimizer/{names[id(parameter)]}/{key}"] = stored
    whole = {name: values.detach().contiguous() for name, values in tensors.items()}
    with atomic_path(path) as temporary:
        about = {"history": history, "scaler": scaler.state_dict()}
        save_tensors(whole, temporary, {key: json.dumps(value) for key, value in about.items()})


def load_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
) -> History | None:
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
                key: values.to(parameter.device, torch.float32) for key, values in state.items()
            }
    return history


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with `prefix`, without it."""
    return {
        name.removeprefix(prefix): values
        for name, values in tensors.items()
        if name.startswith(prefix)
    }
