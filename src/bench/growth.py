"""How the cost of training grows with the number of pairs and with the length of questions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd

from .compare import Act, window
from .turns import Spread, Work, alternate

FACTORS = (1, 2, 4)


def growth(
    acts: Mapping[str, Act], frame: pd.DataFrame, pairs: int, precision: str, rounds: int
) -> dict[str, list[dict[str, Any]]]:
    """Seconds of an epoch of each library (`acts`) at 1, 2 and 4 times the pairs or the length.

    Returns:
        By "pairs" and "length", one row a factor: factor, pairs, and the libraries' `seconds`.
    """
    kinds: dict[str, Callable[[int, int], pd.DataFrame]] = {
        "pairs": lambda factor, number: window(frame, factor * pairs, number),
        "length": lambda factor, number: _longer(window(frame, pairs, number), factor),
    }
    found: dict[str, list[dict[str, Any]]] = {}
    for kind, rows in kinds.items():
        turns = {
            _name(factor, library): _turn(act, rows, factor, precision)
            for factor in FACTORS
            for library, act in acts.items()
        }
        works = alternate(turns, rounds, f"growth with {kind}")
        found[kind] = [_row(factor, works, acts) for factor in FACTORS]
    return found


def _row(
    factor: int, works: Mapping[str, Sequence[Work]], libraries: Iterable[str]
) -> dict[str, Any]:
    seconds, pairs = {}, 0
    for library in libraries:
        done = works[_name(factor, library)]
        pairs = done[0].pairs
        seconds[library] = asdict(Spread.of([work.seconds for work in done]))
    return {"factor": factor, "pairs": pairs, "seconds": seconds}


def _name(factor: int, library: str) -> str:
    return f"{factor}× {library}"


def _turn(
    act: Act, rows: Callable[[int, int], pd.DataFrame], factor: int, precision: str
) -> Callable[[int], Work]:
    return lambda number: act(rows(factor, number), precision)


def _longer(rows: pd.DataFrame, factor: int) -> pd.DataFrame:
    """Every question said `factor` times in a row; who shared a question still shares it."""
    return rows.assign(**{name: rows[name] * factor for name in ("query1", "query2")})
