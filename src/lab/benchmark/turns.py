"""Let contenders take turns, and sum up what they needed."""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from tqdm import tqdm

OURS, THEIRS = "this project", "sentence-transformers"
Name = TypeVar("Name")
Result = TypeVar("Result")


class Work(NamedTuple):
    """What was done: pairs, tokens that an encoder read (pads not counted), seconds."""

    pairs: int
    tokens: int
    seconds: float


Act = Callable[[pd.DataFrame, str], Work]  # (pair frame, precision)
Turn = Callable[[int], Result]  # (number of the round)
Spread = dict[str, float]


def turn(act: Act, frame: pd.DataFrame, pairs: int, precision: str) -> Turn[Work]:
    """`act` on the next `pairs` rows of `frame` in every round."""
    return lambda number: act(window(frame, pairs, number), precision)


def window(frame: pd.DataFrame, size: int, number: int) -> pd.DataFrame:
    """The rows of round `number`: the next `size`, from the start again after the last."""
    rows = np.arange(number * size, (number + 1) * size) % len(frame)
    return frame.iloc[rows].reset_index(drop=True)


def alternate(
    turns: Mapping[Name, Turn[Result]], rounds: int, title: str
) -> dict[Name, list[Result]]:
    """Call every contender once a round, in turns: A B C, A B C, …

    A contender is given the number of the round, so that all do the same work in a round. One
    round before the first is not counted: it fills caches and allocates memory.
    """
    results: dict[Name, list[Result]] = {name: [] for name in turns}
    with tqdm(total=(rounds + 1) * len(turns), desc=title, unit="turn") as bar:
        for number in range(-1, rounds):
            for name, run in turns.items():
                bar.set_postfix_str(str(name), refresh=False)
                result = run(max(number, 0))
                if number >= 0:
                    results[name].append(result)
                bar.update()
    return results


def race(turns: Mapping[Name, Turn[Work]], rounds: int, title: str) -> dict[Name, pd.DataFrame]:
    """`alternate`; what each has done as a table with pairs, tokens and seconds, a row a round."""
    return {name: pd.DataFrame(done) for name, done in alternate(turns, rounds, title).items()}


def spread(rounds: pd.Series | np.ndarray | list[float]) -> Spread:
    """The median of several rounds and their range."""
    median, low, high = np.median(rounds), np.min(rounds), np.max(rounds)
    return {"median": float(median), "low": float(low), "high": float(high)}


def now() -> float:
    """Seconds of a clock that only runs forward, when all that was started is done."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def timed(call: Callable[[], Result]) -> tuple[Result, float]:
    """What a call returns, and how many seconds it took."""
    started = now()
    result = call()
    return result, now() - started


def in_processes(function: Callable[..., Result], tasks: Sequence[tuple]) -> list[Result]:
    """`function` of each tuple of arguments, in a fresh process, to see what memory it takes."""
    with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=1) as pool:
        return pool.starmap(function, tasks, chunksize=1)


@contextmanager
def update_times() -> Iterator[list[float]]:
    """Within the block: when optimizers finished their steps, whoever owns them."""
    times: list[float] = []
    with register_optimizer_step_post_hook(lambda *_: times.append(now())):
        yield times


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
            tokens.append(count(arguments))

    with encoder.register_forward_pre_hook(note):
        yield tokens
