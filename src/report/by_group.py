"""What deciding in groups is worth: by the size of a group, and when the file is damaged."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..data.graph import question_key
from ..ensemble.combine import Decision
from ..ensemble.groups import MOST, candidate_rows, group_sizes
from ..ensemble.predicted import Predicted

_SHOWN = 0.01  # sizes with a smaller share of the pairs are "other"


@dataclass(frozen=True)
class SizeScore:
    """Groups of one size ("5", "other"): accuracies, and how often the number of ones is right."""

    size: str
    groups: int
    pairs: int
    pair_by_pair: float
    in_groups: float
    count_right: float


def by_size(frame: pd.DataFrame, decided: np.ndarray) -> list[SizeScore]:
    """The scores of each common size of groups.

    Args:
        frame: labelled pair frame of P rows.
        decided: int[2, P], labels pair by pair and in groups.
    """
    sizes, keys = group_sizes(frame), frame["query1"].map(question_key)
    labels = frame["label"].to_numpy()
    common = [n for n in range(2, MOST + 1) if np.mean(sizes == n) >= _SHOWN]
    parts = {str(n): sizes == n for n in common} | {"other": ~np.isin(sizes, common)}
    surplus = pd.Series(decided[1] - labels).groupby(keys).transform("sum").to_numpy()
    right = (decided == labels).astype(float)
    return [
        SizeScore(
            size,
            groups=keys[rows].nunique(),
            pairs=int(rows.sum()),
            pair_by_pair=float(right[0, rows].mean()),
            in_groups=float(right[1, rows].mean()),
            count_right=float(np.average(surplus[rows] == 0, weights=1 / sizes[rows])),
        )
        for size, rows in parts.items()
        if rows.any()
    ]


def under_damage(table: Predicted, decision: Decision, scored: np.ndarray) -> list[dict[str, Any]]:
    """Accuracy pair by pair and in groups if a file had been tampered with, one row a damage.

    Args:
        table: labelled pairs that no model was trained on.
        scored: bool[P], the rows that count.
    """
    damages: dict[str, Damage] = {
        "as it is": shuffle(0.0),
        "its rows shuffled": shuffle(1.0),
        "one group in ten cut to three pairs": cut(0.1),
        "one pair in ten moved out of its group": move(0.1),
    }
    found = []
    for name, damage in damages.items():
        rows, alone = damage(table.frame, np.random.default_rng(0))
        damaged = rearranged(table, rows, alone)
        counted, labels = scored[rows], damaged.frame["label"].to_numpy()
        decided = decision.decide(damaged.logits), decision.decide_groups(damaged)
        pairs, groups = (float(np.mean(d[counted] == labels[counted])) for d in decided)
        found.append({"damage": name, "pair_by_pair": pairs, "in_groups": groups})
    return found


def rearranged(table: Predicted, rows: np.ndarray, alone: np.ndarray) -> Predicted:
    """Rows of a table, int[K], in that order; those of `alone`, bool[P], leave their group."""
    frame = table.frame.copy()
    frame.loc[alone, "query1"] += [f" ({row})" for row in np.flatnonzero(alone)]
    frame = frame.iloc[rows].reset_index(drop=True)
    place = {tuple(sorted(pair)): i for i, pair in enumerate(candidate_rows(table.frame).tolist())}
    # Of a group that was too large before nobody has scored the candidates: 0 says nothing.
    kept = [place.get(tuple(sorted(pair)), -1) for pair in rows[candidate_rows(frame)].tolist()]
    logits = {name: values[rows] for name, values in table.logits.items()}
    alike = {name: np.append(values, 0.0)[kept] for name, values in table.alike.items()}
    return Predicted(frame, logits, alike)


# What happens to a pair frame: the rows that are left, in their order, and which stand alone then.
Damage = Callable[[pd.DataFrame, np.random.Generator], tuple[np.ndarray, np.ndarray]]


def shuffle(share: float) -> Damage:
    """That share of the rows, at the head of the file, in any order."""

    def damage(frame: pd.DataFrame, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        head = int(share * len(frame))
        rows = np.concatenate([rng.permutation(head), np.arange(head, len(frame))])
        return rows, np.zeros(len(frame), bool)

    return damage


def cut(share: float) -> Damage:
    """That share of the groups keeps three pairs, drawn at random."""

    def damage(frame: pd.DataFrame, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        groups = frame.groupby(frame["query1"].map(question_key), sort=False).indices.values()
        kept = [rng.permutation(rows)[:3] if rng.random() < share else rows for rows in groups]
        return np.sort(np.concatenate(kept)), np.zeros(len(frame), bool)

    return damage


def move(share: float) -> Damage:
    """That share of the pairs stands alone with its question."""

    def damage(frame: pd.DataFrame, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(len(frame)), rng.random(len(frame)) < share

    return damage
