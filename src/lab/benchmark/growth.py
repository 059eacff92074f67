"""How the cost of training grows with the number of pairs and with the length of questions."""

from typing import Any

import numpy as np
import pandas as pd

from ...errors import UserError
from ...models.api import Tokenizer
from .scale import Bench
from .theirs import TheirSiamese
from .turns import OURS, THEIRS, Act, race, spread, turn, window

FACTORS = (1, 2, 4)


def growth(bench: Bench) -> dict[str, list[dict[str, Any]]]:
    """Seconds of an epoch of each library at 1, 2 and 4 times the pairs or the length.

    Only pairs of which nothing is cut at any factor are taken for the length. `tokens` is the mean
    of a question in round 0.

    Raises:
        UserError: all questions are too long for that.
    """
    ours, pairs = bench.ours["siamese"], bench.scale.growth_pairs
    acts: dict[str, Act] = {OURS: ours.train, THEIRS: TheirSiamese(bench.directory).train}
    short = uncut(bench.frame, ours.tokenizer, ours.member.max_length)
    cases = {
        "pairs": {factor: (bench.frame, factor * pairs) for factor in FACTORS},
        "length": {factor: (longer(short, factor), pairs) for factor in FACTORS},
    }
    found = {}
    for kind, case in cases.items():
        turns = {
            (factor, library): turn(act, frame, size, bench.fastest)
            for factor, (frame, size) in case.items()
            for library, act in acts.items()
        }
        works = race(turns, max(2, bench.scale.rounds // 2), f"growth with {kind}")
        found[kind] = [
            {
                "factor": factor,
                "tokens": float(_lengths(window(frame, size, 0), ours.tokenizer).mean()),
                "pairs": size,
                "seconds": {name: spread(works[factor, name]["seconds"]) for name in acts},
            }
            for factor, (frame, size) in case.items()
        ]
    return found


def uncut(frame: pd.DataFrame, tokenizer: Tokenizer, max_length: int) -> pd.DataFrame:
    """The pairs whose questions fit into `max_length` tokens at the largest factor, too."""
    fits = (_lengths(longer(frame, FACTORS[-1]), tokenizer) <= max_length).all(axis=0)
    if not fits.any():
        raise UserError(
            f"No pair has questions so short that {FACTORS[-1]} times their length fits into "
            f"{max_length} tokens: how cost grows with length cannot be measured. Add such pairs."
        )
    return frame[fits].reset_index(drop=True)


def longer(rows: pd.DataFrame, factor: int) -> pd.DataFrame:
    """Every question said `factor` times in a row; who shared a question still shares it."""
    return rows.assign(**{name: rows[name] * factor for name in ("query1", "query2")})


def _lengths(rows: pd.DataFrame, tokenizer: Tokenizer) -> np.ndarray:
    """Tokens int64[2, P] of both questions, special ones included, nothing cut."""
    columns = [tokenizer(rows[name].tolist(), verbose=False) for name in ("query1", "query2")]
    return np.array([[len(ids) for ids in column["input_ids"]] for column in columns])
