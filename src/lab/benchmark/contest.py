"""This project against sentence-transformers: pairs and tokens a second, and their ratios."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .hardware import flop_per_token
from .ours import Own
from .theirs import RivalCross, RivalSiamese
from .turns import OURS, THEIRS, Spread, Work, alternate

ONE_ORDER = f"{THEIRS} (one order)"
Act = Callable[[pd.DataFrame, str], Work]


def compare(
    own: Mapping[str, Own],
    directory: Path,
    frame: pd.DataFrame,
    *,
    train_pairs: int,
    predict_pairs: int,
    precisions: Sequence[str],
    rounds: int,
    peaks: Mapping[str, float],
) -> dict[str, dict[str, Any]]:
    """Time training and prediction of both architectures by both libraries.

    Args:
        own: "siamese" and "cross" of this project.
        directory: the same encoder as a model directory.
        frame: labelled pairs; a round takes the next `train_pairs` or `predict_pairs` of them.
        peaks: FLOP a second of a matrix product, by precision.

    Returns:
        By subject: `contenders` (pairs_per_s, tokens_per_s, share_of_peak, each a spread) and
        `ratios`: pairs a second of this project over those of a contender of the other library
        in the same precision and, of the fastest precision, over its fp32.
    """
    siamese, cross = RivalSiamese(directory), RivalCross(directory)
    symmetric = RivalCross(directory, both_orders=True)
    subjects: dict[str, tuple[int, bool, dict[str, Act]]] = {
        "train bi-encoder": (
            train_pairs,
            True,
            {OURS: own["siamese"].train, THEIRS: siamese.train},
        ),
        "train cross-encoder": (
            train_pairs,
            True,
            {OURS: own["cross"].train, THEIRS: cross.train},
        ),
        "predict bi-encoder": (
            predict_pairs,
            False,
            {OURS: own["siamese"].predict, THEIRS: siamese.predict},
        ),
        "predict cross-encoder": (
            predict_pairs,
            False,
            {OURS: own["cross"].predict, THEIRS: symmetric.predict, ONE_ORDER: cross.predict},
        ),
    }
    results = {}
    for subject, (pairs, training, acts) in subjects.items():
        works = alternate(_turns(acts, frame, pairs, precisions), rounds, subject)
        flop = flop_per_token(own["siamese"].model.encoder, training)
        results[subject] = {
            "contenders": {
                name: _rates(work, flop / peaks[name.rpartition(", ")[2]])
                for name, work in works.items()
            },
            "ratios": _ratios(works, list(acts)[1:], precisions),
        }
    return results


def window(frame: pd.DataFrame, size: int, number: int) -> pd.DataFrame:
    """The rows of round `number`: the next `size`, from the start again after the last."""
    rows = np.arange(number * size, (number + 1) * size) % len(frame)
    return frame.iloc[rows].reset_index(drop=True)


def _turns(
    acts: Mapping[str, Act], frame: pd.DataFrame, pairs: int, precisions: Sequence[str]
) -> dict[str, Callable[[int], Work]]:
    def turn(act: Act, precision: str) -> Callable[[int], Work]:
        return lambda number: act(window(frame, pairs, number), precision)

    return {
        _name(library, precision): turn(act, precision)
        for precision in precisions
        for library, act in acts.items()
    }


def _name(library: str, precision: str) -> str:
    return f"{library}, {precision}"


def _rates(works: Sequence[Work], peak_share: float) -> dict[str, dict[str, float]]:
    """`peak_share`: of the machine's peak, for one token a second."""
    tokens = [work.tokens / work.seconds for work in works]
    values = {
        "pairs_per_s": [work.pairs / work.seconds for work in works],
        "tokens_per_s": tokens,
        "share_of_peak": [rate * peak_share for rate in tokens],
    }
    return {name: asdict(Spread.of(rates)) for name, rates in values.items()}


def _ratios(
    works: Mapping[str, Sequence[Work]], rivals: Sequence[str], precisions: Sequence[str]
) -> dict[str, dict[str, float]]:
    compared = [(p, rival, p) for rival in rivals for p in precisions]
    if precisions[-1] != precisions[0]:
        compared += [(precisions[-1], rival, precisions[0]) for rival in rivals]
    ratios = {}
    for mine, rival, theirs in compared:
        one, other = works[_name(OURS, mine)], works[_name(rival, theirs)]
        quotients = [
            (a.pairs / a.seconds) / (b.pairs / b.seconds) for a, b in zip(one, other, strict=True)
        ]
        ratios[f"{mine} / {rival} {theirs}"] = asdict(Spread.of(quotients))
    return ratios
