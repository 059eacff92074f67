"""Let contenders take turns, and sum up what they needed."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from tqdm import tqdm

Result = TypeVar("Result")
OURS, THEIRS = "this project", "sentence-transformers"


@dataclass(frozen=True)
class Work:
    """What was done: pairs, tokens that an encoder read (pads not counted), seconds."""

    pairs: int
    tokens: int
    seconds: float


@dataclass(frozen=True)
class Spread:
    """The median of several rounds and their range."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Of at least one value."""
        return cls(float(np.median(values)), float(min(values)), float(max(values)))


def alternate(
    contenders: Mapping[str, Callable[[int], Result]], rounds: int, title: str
) -> dict[str, list[Result]]:
    """Call every contender once a round, in turns: A B C, A B C, …

    A contender is given the number of the round, so that all do the same work in a round. One
    round before the first is not counted: it fills caches and allocates memory.
    """
    results: dict[str, list[Result]] = {name: [] for name in contenders}
    with tqdm(total=(rounds + 1) * len(contenders), desc=title, unit="turn") as bar:
        for number in range(-1, rounds):
            for name, run in contenders.items():
                bar.set_postfix_str(name, refresh=False)
                result = run(max(number, 0))
                if number >= 0:
                    results[name].append(result)
                bar.update()
    return results


def now() -> float:
    """Seconds of a clock that only runs forward, when all that was started is done."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


@contextmanager
def update_times() -> Iterator[list[float]]:
    """Within the block: when optimizers finished their steps, whoever owns them."""
    times: list[float] = []
    hook = register_optimizer_step_post_hook(lambda *_: times.append(now()))
    try:
        yield times
    finally:
        hook.remove()


@contextmanager
def counted_tokens(
    encoder: nn.Module, count: Callable[[tuple], int], training: bool
) -> Iterator[list[int]]:
    """Within the block: how many tokens each call of `encoder` was given.

    `count` reads that from the call's arguments. Only calls in training mode are counted, or only
    those in evaluation mode.
    """
    tokens: list[int] = []

    def note(module: nn.Module, arguments: tuple) -> None:
        if module.training == training:
            tokens.append(int(count(arguments)))

    hook = encoder.register_forward_pre_hook(note)
    try:
        yield tokens
    finally:
        hook.remove()
