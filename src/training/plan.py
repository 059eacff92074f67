"""What training will take on this machine: parameters, steps, memory, disk, time.

Found before the first step by a few batches of each member. What does not fit is refused there, and
not after an hour.
"""

import math
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import torch
from accelerate import PartialState

from ..config import MemberConfig
from ..data.pairs import read_pairs
from ..errors import UserError
from ..models.precision import resolve
from ..models.registry import build_model, read_pairs_for
from ..step import peak_memory_gb
from .batches import epoch_batches
from .fold_model import FoldFiles, FoldModel, fit, fold_seed, in_memory
from .loop import Conduct, TrainingFailed
from .objective import Objective

_BATCHES = 2  # timed; the one before them fills caches and does not count
# fp32: weights, their gradients, and two moments of AdamW.
_BYTES_IN_TRAINING = 16


@dataclass(frozen=True)
class Plan:
    """One member's training.

    Attributes:
        folds: that are still to be trained.
        steps: of the optimizer, on the first of the folds.
        precision: the number format, and why.
        memory_gb: peak with the longest pairs: the card's, or without one this process's so far.
        disk_gb: weights of all `folds`, and two checkpoints (one is written while one is kept).
        seconds: of all `folds`.
    """

    member: str
    folds: int
    parameters: int
    steps: int
    precision: str
    memory_gb: float
    disk_gb: float
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.member}: {self.folds} × {self.seconds / self.folds / 60:.1f} min, "
            f"{self.parameters / 1e6:,.0f} M parameters, {self.steps:,} steps, memory "
            f"{self.memory_gb:.1f} GB, disk {self.disk_gb:.1f} GB, {self.precision}"
        )


def make_plan(
    name: str, member: MemberConfig, files: Sequence[FoldFiles], pretrained: Path
) -> Plan:
    """Train a few batches of a member on the first of the folds `files`, and throw them away.

    Nothing is written, and no random number of the training itself is drawn.

    Raises:
        UserError: the memory is too small.
    """
    device = PartialState().device
    network = FoldModel(*build_model(member, pretrained, member.seed), member)
    parameters = sum(p.numel() for p in network.model.parameters())
    _refuse_if_too_large(name, parameters, device)
    stored = sum(values.nbytes for values in network.model.compact_state().values())
    checkpoint = 8 * parameters  # weights in fp32, two moments in bf16
    part, own = read_pairs(files[0].part, labelled=True).frame, files[0].own_rows()

    def probe(tried: MemberConfig) -> float:
        brief = tried.model_copy(
            update={"training": tried.training.model_copy(update={"epochs": 1})}
        )
        return _seconds_an_epoch(FoldModel(network.model, network.tokenizer, brief), part, own)

    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    seconds = in_memory(member, probe, f"{name}, a trial batch")
    is_cuda = device.type == "cuda"
    memory = torch.cuda.max_memory_allocated(device) / 1e9 if is_cuda else peak_memory_gb()
    return Plan(
        name,
        len(files),
        parameters,
        _steps(network, part, fold_seed(member, files[0].fold)),
        ", ".join(resolve(device, member.training.precision)),
        round(memory, 2),
        round((len(files) * stored + 2 * checkpoint) / 1e9, 2),
        round(len(files) * member.training.epochs * seconds, 1),
    )


def _steps(network: FoldModel, part: pd.DataFrame, seed: int) -> int:
    settings = network.member.training
    pairs = read_pairs_for(network.member, part, network.tokenizer)
    total = 0
    for epoch in range(settings.epochs):
        rng = np.random.default_rng((seed, epoch))
        batches = epoch_batches(pairs.groups, pairs.lengths, settings.batch_pairs, rng)
        total += math.ceil(len(batches) / settings.accumulation)
    return total


def _seconds_an_epoch(network: FoldModel, part: pd.DataFrame, own: pd.DataFrame) -> float:
    settings = network.member.training
    size = settings.batch_pairs * settings.accumulation
    letters = part["query1"].str.len() + part["query2"].str.len()
    longest = part.iloc[np.argsort(-letters.to_numpy(), kind="stable")[:size]]
    conduct = Conduct(f"how long? {network.member.encoder}", network.member.seed)
    objective = Objective.of(network.member)
    for rows in (longest, part.iloc[: _BATCHES * size]):
        started = time.perf_counter()
        try:
            fit(network, rows, part.iloc[:2], objective, conduct)
        except TrainingFailed:
            pass  # two pairs say nothing about the training, and it is not asked about
        training = (time.perf_counter() - started) / len(rows)
    started = time.perf_counter()
    asked = own.iloc[:size]
    network.predict(asked)
    return len(part) * training + len(own) * (time.perf_counter() - started) / len(asked)


def _refuse_if_too_large(name: str, parameters: int, device: torch.device) -> None:
    """Halving a batch does not help where the network alone does not fit."""
    needed = _BYTES_IN_TRAINING * parameters / 1e9
    if device.type == "cuda":
        where, there = torch.cuda.get_device_name(device), torch.cuda.mem_get_info(device)[0]
    else:
        where, there = "this machine", psutil.virtual_memory().available
    if needed > there / 1e9:
        raise UserError(
            f"{name}: {parameters / 1e6:,.0f} M parameters need {needed:.1f} GB for weights, "
            f"gradients and AdamW alone; {where} has {there / 1e9:.1f} GB free. Choose a smaller "
            f"encoder (members.{name}.encoder), or free some memory."
        )


def refuse_full_disk(plans: Sequence[Plan], work: Path) -> None:
    """Stop where the weights will not fit beside the run's other files.

    Raises:
        UserError: there is less room than the plans need.
    """
    needed, free = sum(plan.disk_gb for plan in plans), shutil.disk_usage(work).free / 1e9
    if needed > free:
        raise UserError(
            f"Training will need {needed:.1f} GB on the disk of {work}; {free:.1f} GB are free. "
            "Free some space, or name another place (paths.work=DIR)."
        )
