"""Train one member on one fold."""

import math
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import Tensor, nn
from tqdm import tqdm

from ..config import TrainingConfig
from ..errors import UserError
from .batches import epoch_batches
from .checkpoint import Progress, load_checkpoint, save_checkpoint
from .objective import Objective
from .optimizer import linear_schedule, make_optimizer
from .step import accumulate_gradient


class TrainingFailed(UserError):
    """The loss is not finite, or the network answers the same to everything."""


class Pairs(Protocol):
    """Tokenised pairs, as `models.siamese` and `models.cross_encoder` make them."""

    groups: np.ndarray
    lengths: np.ndarray

    def __len__(self) -> int: ...

    def collate(self, rows: np.ndarray, reversed_rows: np.ndarray): ...


def autocast(device: torch.device, precision: str):
    """The mixed-precision context: bf16 where the hardware computes in it, else plain fp32."""
    if precision == "auto":
        if device.type == "cuda":
            supported = torch.cuda.is_bf16_supported(including_emulation=False)
        else:
            supported = device.type == "cpu" and torch.cpu._is_avx512_bf16_supported()
        precision = "bf16" if supported else "fp32"
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16)


def log_loss(labels: np.ndarray, logits: np.ndarray) -> float:
    """Mean negative log-likelihood of 0/1 labels under logits."""
    return float(np.mean(np.logaddexp(0.0, np.where(labels == 1, -logits, logits))))


def train(
    model: nn.Module,
    pairs: Pairs,
    labels: np.ndarray,
    valid_pairs: Pairs,
    valid_labels: np.ndarray,
    settings: TrainingConfig,
    objective: Objective,
    *,
    swap: float,
    seed: int,
    checkpoint: Path | None,
    title: str,
    criterion: Callable[[np.ndarray, np.ndarray], float] = log_loss,
) -> Progress:
    """Train `model` in place and leave it with the weights of its best epoch.

    Args:
        labels: int[P], 0 or 1, of `pairs`; `valid_labels` of `valid_pairs`, the fold's own rows.
        objective: the loss of a batch.
        swap: chance that a pair is read in reverse order in an epoch.
        seed: of batches, swaps and dropout; epoch e draws from (seed, e).
        checkpoint: file that holds the state between epochs, so that a killed run continues; None
            for training that is too short to be worth it.
        title: shown on the progress bar.
        criterion: of labels and logits; the epoch in which it is lowest on `valid_pairs` is best.

    Returns:
        The history, and the best epoch's weights and logits of `valid_pairs`.

    Raises:
        TrainingFailed: the loss is not finite, or all predictions have collapsed to one value.
    """
    # The default handles one process and, under `accelerate launch`, many.
    accelerator = Accelerator(mixed_precision="no")
    device, bare = accelerator.device, model
    if settings.gradient_checkpointing:
        if not hasattr(bare.encoder, "backbone"):
            raise UserError(
                f"{title}: this encoder has no layers whose activations could be recomputed. Set "
                "training.gradient_checkpointing=false for it."
            )
        bare.encoder.backbone.activation_checkpointing_enable()
    optimizer = make_optimizer(bare.to(device), bare.encoder, settings)
    progress = (checkpoint and load_checkpoint(checkpoint, bare, optimizer)) or Progress()
    model = accelerator.prepare_model(bare)
    targets = torch.from_numpy(np.asarray(labels, np.float32))
    base_rates = [group["lr"] for group in optimizer.param_groups]
    for epoch in range(len(progress.history), settings.epochs):
        rng = np.random.default_rng((seed, epoch))
        set_seed(seed + 1000 * epoch, device_specific=True)  # dropout
        batches = epoch_batches(pairs.groups, pairs.lengths, settings.batch_pairs, rng)
        steps = settings.epochs * math.ceil(len(batches) / settings.accumulation)
        done = epoch * math.ceil(len(batches) / settings.accumulation)
        losses, counts = [], []
        bar = tqdm(
            batches,
            f"{title} epoch {epoch + 1}/{settings.epochs}",
            unit="batch",
            disable=not accelerator.is_main_process,
            mininterval=1.0,
        )
        model.train()
        for number, batch in enumerate(bar, start=1):
            reversed_rows = rng.random(len(batch)) < swap
            share = np.array_split(np.arange(len(batch)), accelerator.num_processes)
            mine = share[accelerator.process_index]
            # Processes hold unequal shares; DDP averages, so each weighs its sum by the whole.
            scale = accelerator.num_processes / (len(batch) * settings.accumulation)
            if len(mine) == 0:  # fewer pairs than processes: compute one pair for nothing
                mine, scale = np.array([0]), 0.0
            inputs = pairs.collate(batch[mine], reversed_rows[mine]).to(device)
            goals = targets[batch[mine]].to(device)

            def compute_loss(network: nn.Module, inputs=inputs, goals=goals, scale=scale) -> Tensor:
                with autocast(device, settings.precision):
                    scored = network(inputs)
                return scale * objective(scored, inputs, goals)

            boundary = number % settings.accumulation == 0 or number == len(batches)
            # An attack follows the gradient of all processes, so it needs every pass in sync.
            in_sync = boundary or settings.adversarial.method != "none"
            with nullcontext() if in_sync else accelerator.no_sync(model):
                loss = accumulate_gradient(
                    compute_loss,
                    model,
                    bare.encoder.word_embeddings,
                    settings.adversarial,
                    accelerator,
                )
            losses.append(accelerator.reduce(loss, "mean").item() * settings.accumulation)
            counts.append(len(batch))
            if not math.isfinite(losses[-1]):
                raise TrainingFailed(
                    f"{title}: the loss is not finite in epoch {epoch + 1}. The usual cause is "
                    f"a learning rate that is too high: lower training.encoder_lr (now "
                    f"{settings.encoder_lr:g}), or set training.precision=fp32."
                )
            if boundary:
                accelerator.clip_grad_norm_(model.parameters(), settings.clip_norm)
                factor = linear_schedule(done, steps, settings.warmup)
                for group, rate in zip(optimizer.param_groups, base_rates, strict=True):
                    group["lr"] = rate * factor
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                done += 1
                bar.set_postfix(loss=f"{np.mean(losses[-50:]):.4f}", refresh=False)
        with autocast(device, settings.precision):
            logits = bare.predict(valid_pairs)
        _refuse_collapse(logits, title, settings)
        row = {
            "epoch": epoch + 1,
            "train_loss": float(np.average(losses, weights=counts)),
            "valid_loss": criterion(valid_labels, logits),
            "valid_accuracy": float(np.mean((logits > 0) == (valid_labels == 1))),
        }
        if all(row["valid_loss"] < earlier["valid_loss"] for earlier in progress.history):
            progress.best = {name: v.detach().clone() for name, v in bare.state_dict().items()}
            progress.valid_logits = torch.from_numpy(logits)
        progress.history.append(row)
        if checkpoint and accelerator.is_main_process and epoch + 1 < settings.epochs:
            save_checkpoint(checkpoint, bare, optimizer, progress)
    bare.load_state_dict(progress.best)
    return progress


def _refuse_collapse(logits: np.ndarray, title: str, settings: TrainingConfig) -> None:
    """A network that answers the same to everything has died; more epochs will not help."""
    if not np.isfinite(logits).all() or np.ptp(logits) < 1e-3:
        raise TrainingFailed(
            f"{title}: the predictions have collapsed to one class (all logits are about "
            f"{logits[0]:.3f}). The usual cause is a learning rate that is too high: lower "
            f"training.encoder_lr (now {settings.encoder_lr:g}) or raise training.warmup."
        )
