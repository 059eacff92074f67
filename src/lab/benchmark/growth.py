"""How the cost of training grows with the number of pairs and with the length of questions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from transformers import PreTrainedTokenizerBase

from ...errors import UserError
from .contest import Act, window
from .ours import Own
from .theirs import Rival
from .turns import OURS, THEIRS, Spread, Work, alternate

FACTORS = (1, 2, 4)


def growth(
    own: Own, rival: Rival, frame: pd.DataFrame, pairs: int, precision: str, rounds: int
) -> dict[str, list[dict[str, Any]]]:
    """Seconds of an epoch of each library at 1, 2 and 4 times the pairs or the length.

    Only pairs of which nothing is cut at any factor are taken for the length.

    Returns:
        By "pairs" and "length", one row a factor: factor, pairs, mean `tokens` of a question
        (of round 0), and the libraries' `seconds`.

    Raises:
        UserError: all questions are too long for that.
    """
    acts = {OURS: own.train, THEIRS: rival.train}
    short = uncut(frame, own.tokenizer, own.member.max_length)
    kinds: dict[str, Callable[[int, int], pd.DataFrame]] = {
        "pairs": lambda factor, number: window(frame, factor * pairs, number),
        "length": lambda factor, number: longer(window(short, pairs, number), factor),
    }
    found: dict[str, list[dict[str, Any]]] = {}
    for kind, rows in kinds.items():
        turns = {
            _name(factor, library): _turn(act, rows, factor, precision)
            for factor in FACTORS
            for library, act in acts.items()
        }
        works = alternate(turns, rounds, f"growth with {kind}")
        found[kind] = [
            {"factor": factor, "tokens": float(_lengths(rows(factor, 0), own.tokenizer).mean())}
            | _work(factor, works, acts)
            for factor in FACTORS
        ]
    return found


def uncut(frame: pd.DataFrame, tokenizer: PreTrainedTokenizerBase, max_length: int) -> pd.DataFrame:
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


def _lengths(rows: pd.DataFrame, tokenizer: PreTrainedTokenizerBase) -> np.ndarray:
    """Tokens int64[2, P] of both questions, special ones included, nothing cut."""
    columns = [tokenizer(rows[name].tolist(), verbose=False) for name in ("query1", "query2")]
    return np.array([[len(ids) for ids in column["input_ids"]] for column in columns])


def _work(
    factor: int, works: Mapping[str, Sequence[Work]], libraries: Iterable[str]
) -> dict[str, Any]:
    seconds, pairs = {}, 0
    for library in libraries:
        done = works[_name(factor, library)]
        pairs = done[0].pairs
        seconds[library] = asdict(Spread.of([work.seconds for work in done]))
    return {"pairs": pairs, "seconds": seconds}


def _name(factor: int, library: str) -> str:
    return f"{factor}× {library}"


def _turn(
    act: Act, rows: Callable[[int, int], pd.DataFrame], factor: int, precision: str
) -> Callable[[int], Work]:
    return lambda number: act(rows(factor, number), precision)
