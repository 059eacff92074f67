"""The pre-training loop: batches of one length, AdamW, a linear schedule."""

import numpy as np
import torch
from accelerate import PartialState
from torch import nn
from tqdm import tqdm

from ...config import PretrainConfig
from ...models.precision import autocast
from ...training.optimizer import linear_schedule
from .tasks import Task

WARMUP = 0.06  # share of the steps, as RoBERTa has it (Liu et al. 2019)
CLIP_NORM = 1.0


def pretrain(model: nn.Module, task: Task, settings: PretrainConfig, title: str) -> list[float]:
    """Train in place; returns the mean loss of each epoch."""
    device = PartialState().device
    model.to(device).train()
    optimizer = adamw(model, settings.learning_rate)
    torch.manual_seed(settings.seed)  # dropout, masks and permutations
    rng = np.random.default_rng(settings.seed)
    epochs = [length_batches(task.lengths, settings.batch, rng) for _ in range(settings.epochs)]
    schedule = linear_schedule(optimizer, 0, sum(map(len, epochs)), WARMUP)
    means = []
    for number, batches in enumerate(epochs, 1):
        losses: list[float] = []
        label = f"{title} epoch {number}/{settings.epochs}"
        bar = tqdm(batches, label, unit="batch", mininterval=1.0)
        for rows in bar:
            with autocast(device, settings.precision):
                loss = task.loss(model, rows, rng)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(loss.item())
            bar.set_postfix(loss=f"{np.mean(losses[-50:]):.3f}", refresh=False)
        means.append(float(np.mean(losses)))
    return means


def adamw(model: nn.Module, rate: float, decay: float = 0.01) -> torch.optim.AdamW:
    """AdamW that does not decay biases and layer norms, the parameters of one dimension."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    groups: list[dict] = [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=rate, weight_decay=decay, fused=True)


def length_batches(lengths: np.ndarray, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Rows in random batches of one length; every row occurs once."""
    batches = []
    for length in np.unique(lengths):
        rows = rng.permutation(np.flatnonzero(lengths == length))
        batches += [rows[start : start + size] for start in range(0, len(rows), size)]
    return [batches[index] for index in rng.permutation(len(batches))]
