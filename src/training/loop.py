"""Train one network on the pairs of one training part."""

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import Tensor, nn
from tqdm import tqdm

from ..config import TrainingConfig
from ..errors import UserError
from ..models.api import PairModel, Pairs
from ..models.precision import resolve
from .adversarial import accumulate_gradient
from .batches import epoch_batches
from .checkpoint import History, load_checkpoint, round_moments, save_checkpoint
from .optimizer import linear_schedule, make_optimizer


class TrainingFailed(UserError):
    """The loss is not finite, or the network answers the same to everything."""


def log_loss(labels: np.ndarray, logits: np.ndarray) -> float:
    """Mean negative log-likelihood of 0/1 labels under logits."""
    return float(np.mean(np.logaddexp(0.0, np.where(labels == 1, -logits, logits))))


@dataclass(frozen=True)
class LabelledPairs:
    """Tokenised pairs and their labels int[P], 0 or 1."""

    pairs: Pairs
    labels: np.ndarray


@dataclass(frozen=True)
class Conduct:
    """How a training is carried out, beside its settings.

    Attributes:
        title: shown on the progress bar.
        seed: of batches, swaps and dropout; epoch e draws from (seed, e).
        swap: chance that a pair is read in reverse order in an epoch.
        checkpoint: file that holds the state between epochs, so that a killed run continues; None
            for training that is too short to be worth it.
        criterion: of labels and logits of the validation pairs; the epoch with the lowest is kept.
            None: the last epoch is, so that the validation pairs choose nothing.
    """

    title: str
    seed: int
    swap: float = 0.0
    checkpoint: Path | None = None
    criterion: Callable[[np.ndarray, np.ndarray], float] | None = None


def train(
    model: PairModel,
    training: LabelledPairs,
    valid: LabelledPairs,
    settings: TrainingConfig,
    objective: Callable[..., Tensor],
    conduct: Conduct,
) -> tuple[History, np.ndarray]:
    """Train `model` in place; its encoder's matrices end in the format that they are stored in.

    Args:
        valid: pairs that are scored after every epoch, for the history.
        objective: the loss of a batch, see `objective.Objective`.

    Returns:
        One row an epoch (epoch, train_loss, valid_loss, valid_accuracy), and the logits float64[P]
        of `valid` by the weights that were kept.

    Raises:
        TrainingFailed: the loss is not finite, or all predictions have collapsed to one value.
    """
    loop = _Loop(model, training, settings, objective, conduct)
    checkpoint = conduct.checkpoint
    state = model, loop.optimizer, loop.scaler
    history: History = (checkpoint and load_checkpoint(checkpoint, *state)) or []
    criterion, kept = conduct.criterion or log_loss, (np.empty(0), dict[str, Tensor]())
    for epoch in range(len(history), settings.epochs):
        train_loss = loop.run_epoch(epoch)
        is_last = epoch + 1 == settings.epochs
        if is_last:
            model.load_state_dict(model.compact_state())
        logits = model.predict(valid.pairs)
        _refuse_collapse(logits, conduct.title, settings)
        row = {
            "epoch": epoch + 1,
            "train_loss": train_loss,
            "valid_loss": criterion(valid.labels, logits),
            "valid_accuracy": float(np.mean((logits > 0) == (valid.labels == 1))),
        }
        if loop.scaler.is_enabled():
            row["skipped_steps"] = loop.skipped
        if conduct.criterion is None:
            kept = logits, {}
        elif all(row["valid_loss"] < earlier["valid_loss"] for earlier in history):
            kept = logits, {name: v.detach().clone() for name, v in model.state_dict().items()}
        history.append(row)
        if checkpoint and not is_last:
            round_moments(loop.optimizer)  # in all processes, and whether or not one is killed
            if loop.accelerator.is_main_process:
                save_checkpoint(checkpoint, *state, history)
    logits, best = kept
    if best:
        model.load_state_dict(best)
    return history, logits


class _Loop:
    """The parts of a training, and an epoch of it."""

    def __init__(
        self,
        model: PairModel,
        training: LabelledPairs,
        settings: TrainingConfig,
        objective: Callable[..., Tensor],
        conduct: Conduct,
    ) -> None:
        # The default handles one process and, under `accelerate launch`, many.
        self.accelerator = Accelerator(mixed_precision="no")
        self.settings, self.objective, self.conduct = settings, objective, conduct
        self.pairs = training.pairs
        self.targets = torch.from_numpy(np.asarray(training.labels, np.float32))
        if settings.gradient_checkpointing:
            model.encoder.checkpoint_activations()
        self.bare = model.to(self.accelerator.device)
        # fp16 cannot hold small gradients: the loss is scaled up, and its gradient down again.
        device = self.accelerator.device
        is_half = resolve(device, model.precision)[0] == "fp16"
        self.scaler = torch.amp.GradScaler(device.type, enabled=is_half)
        self.skipped = 0  # steps of which the gradient had overflowed
        self.optimizer = make_optimizer(model, settings)
        self.model: nn.Module = self.accelerator.prepare_model(model)

    def run_epoch(self, epoch: int) -> float:
        """One pass over the training pairs; the mean loss of a pair."""
        settings, conduct = self.settings, self.conduct
        rng = np.random.default_rng((conduct.seed, epoch))
        set_seed(conduct.seed + 1000 * epoch, device_specific=True)  # dropout
        batches = epoch_batches(self.pairs.groups, self.pairs.lengths, settings.batch_pairs, rng)
        steps = math.ceil(len(batches) / settings.accumulation)
        schedule = linear_schedule(
            self.optimizer, epoch * steps, settings.epochs * steps, settings.warmup
        )
        bar = tqdm(
            batches,
            f"{conduct.title} epoch {epoch + 1}/{settings.epochs}",
            unit="batch",
            disable=not self.accelerator.is_main_process,
            mininterval=1.0,
        )
        self.model.train()
        losses: list[float] = []
        for number, batch in enumerate(bar, start=1):
            reversed_rows = rng.random(len(batch)) < conduct.swap
            is_last = number % settings.accumulation == 0 or number == len(batches)
            losses.append(self._add_gradient(batch, reversed_rows, is_last))
            if not math.isfinite(losses[-1]):
                raise TrainingFailed(
                    f"{conduct.title}: the loss is not finite in epoch {epoch + 1}. The usual "
                    "cause is a learning rate that is too high: lower training.encoder_lr (now "
                    f"{settings.encoder_lr:g}), or set training.precision=fp32."
                )
            if is_last:
                self._step()
                schedule.step()
                self.optimizer.zero_grad(set_to_none=True)
                bar.set_postfix(loss=f"{np.mean(losses[-50:]):.4f}", refresh=False)
        return float(np.average(losses, weights=[len(batch) for batch in batches]))

    def _step(self) -> None:
        """The optimizer's, with the gradient's norm cut; none where the gradient overflowed."""
        self.scaler.unscale_(self.optimizer)
        self.accelerator.clip_grad_norm_(self.model.parameters(), self.settings.clip_norm)
        before = self.scaler.get_scale()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.skipped += self.scaler.get_scale() < before

    def _add_gradient(self, batch: np.ndarray, reversed_rows: np.ndarray, is_last: bool) -> float:
        """Add the gradient of a batch to `.grad`; its mean loss over all processes.

        Args:
            is_last: whether the optimizer takes its step afterwards.
        """
        accelerator, accumulation = self.accelerator, self.settings.accumulation
        share = np.array_split(np.arange(len(batch)), accelerator.num_processes)
        mine = share[accelerator.process_index]
        # Processes hold unequal shares; DDP averages, so each weighs its sum by the whole.
        scale = accelerator.num_processes / (len(batch) * accumulation)
        if len(mine) == 0:  # fewer pairs than processes: compute one pair for nothing
            mine, scale = np.array([0]), 0.0
        inputs: Any = self.pairs.collate(batch[mine], reversed_rows[mine])
        inputs = inputs.to(accelerator.device)
        goals = self.targets[batch[mine]].to(accelerator.device)

        def compute_loss(network: nn.Module) -> Tensor:
            return self.scaler.scale(scale * self.objective(network(inputs), inputs, goals))

        # An attack follows the gradient of all processes, so it needs every pass in sync.
        in_sync = is_last or self.settings.adversarial.method != "none"
        with nullcontext() if in_sync else accelerator.no_sync(self.model):
            loss = accumulate_gradient(
                compute_loss,
                self.model,
                self.bare.encoder.word_embeddings,
                self.settings.adversarial,
                accelerator,
            )
        return accelerator.reduce(loss, "mean").item() * accumulation / self.scaler.get_scale()


def _refuse_collapse(logits: np.ndarray, title: str, settings: TrainingConfig) -> None:
    """A network that answers the same to everything has died; more epochs will not help."""
    if not np.isfinite(logits).all() or np.ptp(logits) < 1e-3:
        raise TrainingFailed(
            f"{title}: the predictions have collapsed to one class (all logits are about "
            f"{logits[0]:.3f}). The usual cause is a learning rate that is too high: lower "
            f"training.encoder_lr (now {settings.encoder_lr:g}) or raise training.warmup."
        )
