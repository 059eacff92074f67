"""How long training will take on this machine, measured on a few batches."""

import time
from pathlib import Path

from accelerate import PartialState

from ..config import Config, MemberConfig
from ..data.pairs import read_pairs
from ..models.precision import resolve
from ..models.registry import build_model
from .fold_model import FoldFiles, FoldModel, fit
from .loop import Conduct, TrainingFailed
from .objective import Objective

_WARM_UP, _BATCHES = 1, 2  # batches; the first one fills caches and does not count


def expected_seconds(member: MemberConfig, files: FoldFiles, pretrained: Path) -> float:
    """Seconds that training the member on this fold will take, about.

    Nothing is written, and no random number of the training itself is drawn.
    """
    part = read_pairs(files.part, labelled=True).frame
    settings = member.training.model_copy(update={"epochs": 1})
    brief = member.model_copy(update={"training": settings})
    network = FoldModel(*build_model(brief, pretrained, member.seed), brief)
    conduct = Conduct(f"how long? {member.architecture} {member.encoder}", member.seed)
    size = settings.batch_pairs
    for batches in (_WARM_UP, _BATCHES):
        started = time.perf_counter()
        try:
            fit(network, part.iloc[: batches * size], part.iloc[:2], Objective.of(brief), conduct)
        except TrainingFailed:
            pass  # two pairs say nothing about the training, and it is not asked about
        training = (time.perf_counter() - started) / batches
    started = time.perf_counter()
    network.predict(part.iloc[:size])
    validation = time.perf_counter() - started
    an_epoch = len(part) * training + len(files.own_rows()) * validation
    return member.training.epochs * an_epoch / size


def precision_here(config: Config) -> str:
    """In which number formats the members train on this machine, and why."""
    device = PartialState().device
    found = dict.fromkeys(
        resolve(device, member.training.precision) for member in config.members.values()
    )
    return "; ".join(f"{name}, {why}" for name, why in found)
