"""How long training will take on this machine, measured on a few batches."""

import time
from pathlib import Path

import numpy as np

from ..config import MemberConfig
from ..data.pairs import read_pairs
from ..models.registry import build_model
from .fold_model import FoldFiles, FoldModel, fit
from .loop import Conduct, TrainingFailed
from .objective import Objective

_BATCHES = (1, 2)  # the first batch also fills caches, the second one is what a batch costs


def expected_seconds(member: MemberConfig, files: FoldFiles, pretrained: Path) -> float:
    """Seconds that training the member on this fold will take, about.

    Nothing is written, and no random number of the training itself is drawn.
    """
    part = read_pairs(files.part, labelled=True).frame
    settings = member.training.model_copy(update={"epochs": 1})
    brief = member.model_copy(update={"training": settings})
    network = FoldModel(*build_model(brief, pretrained, member.seed), brief)
    seconds = []
    for batches in _BATCHES:
        rows = part.iloc[: batches * settings.batch_pairs]
        conduct = Conduct(f"how long? {member.architecture} {member.encoder}", member.seed)
        started = time.perf_counter()
        try:
            fit(network, rows, part.iloc[:2], Objective.of(brief), conduct)
        except TrainingFailed:
            pass  # two pairs say nothing about the training, and it is not asked about
        seconds.append(time.perf_counter() - started)
    a_batch = float(np.diff(seconds)[0]) / (_BATCHES[1] - _BATCHES[0])
    return max(a_batch, 0.0) * member.training.epochs * len(part) / settings.batch_pairs
