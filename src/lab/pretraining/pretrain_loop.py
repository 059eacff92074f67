"""The pre-training loop: batches of one length, AdamW, a linear schedule."""

import numpy as np
import torch
from accelerate import PartialState
from torch import nn
from tqdm import tqdm

from ...config import PretrainConfig
from ...training.loop import autocast
from ...training.optimizer import linear_schedule
from .tasks import Task

WARMUP = 0.06  # share of the steps, as RoBERTa has it (Liu et al. 2019)
WEIGHT_DECAY = 0.01
CLIP_NORM = 1.0


def pretrain(model: nn.Module, task: Task, settings: PretrainConfig, title: str) -> list[float]:
    """Train in place; returns the mean loss of each epoch."""
    device = PartialState().device
    model.to(device).train()
    decayed = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    groups = [
        {"params": decayed, "weight_decay": WEIGHT_DECAY},
        {"params": plain, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=settings.learning_rate, fused=True)
    torch.manual_seed(settings.seed)  # dropout, masks and permutations
    rng = np.random.default_rng(settings.seed)
    epochs = [length_batches(task.lengths, settings.batch, rng) for _ in range(settings.epochs)]
    total, done, means = sum(map(len, epochs)), 0, []
    for number, batches in enumerate(epochs, 1):
        losses = []
        label = f"{title} epoch {number}/{settings.epochs}"
        bar = tqdm(batches, label, unit="batch", mininterval=1.0)
        for rows in bar:
            with autocast(device, settings.precision):
                loss = task.loss(model, rows, rng)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * linear_schedule(done, total, WARMUP)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(loss.item())
            done += 1
            bar.set_postfix(loss=f"{np.mean(losses[-50:]):.3f}", refresh=False)
        means.append(float(np.mean(losses)))
    return means


def length_batches(lengths: np.ndarray, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Rows in random batches of one length; every row occurs once."""
    batches = []
    for length in np.unique(lengths):
        rows = rng.permutation(np.flatnonzero(lengths == length))
        batches += [rows[start : start + size] for start in range(0, len(rows), size)]
    return [batches[index] for index in rng.permutation(len(batches))]
