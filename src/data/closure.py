"""Transitive closure: pairs that follow from the labelled ones.

A=B and A=C give B=C; A=B and A≠C give B≠C. "The same question" is an equivalence, so questions
joined by positive pairs form a group, all of a group mean the same, and one negative pair
between two groups tells all of the one apart from all of the other.
"""

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

Pair = tuple[str, str]  # two questions, sorted


@dataclass(frozen=True)
class Closure:
    """Derived pairs, sorted, without those that were given."""

    same: list[Pair]
    different: list[Pair]


def transitive_closure(labels: dict[Pair, set[int]]) -> Closure:
    """Derive what follows from labelled pairs of questions.

    Args:
        labels: for each pair (sorted tuple) the labels it was given, a subset of {0, 1}; a pair
            with none or with both is evidence for nothing.

    A group in which some pair is labelled negative contradicts itself: every pair inside can be
    derived with both labels, and what its members mean is open. Nothing is derived from it.
    """
    questions = sorted({question for pair in labels for question in pair})
    number = {question: index for index, question in enumerate(questions)}
    given: dict[int, list[tuple[int, int]]] = {0: [], 1: []}
    for (first, second), found in labels.items():
        if len(found) == 1:
            given[next(iter(found))].append((number[first], number[second]))

    group = _groups(given[1], len(questions))
    members: dict[int, list[str]] = {}
    for question, owner in zip(questions, group):
        members.setdefault(owner, []).append(question)
    between = {tuple(sorted((group[a], group[b]))) for a, b in given[0]}
    broken = {first for first, second in between if first == second}

    same = {
        pair
        for owner, texts in members.items()
        if owner not in broken
        for pair in combinations(texts, 2)
    }
    different = {
        (a, b) if a < b else (b, a)
        for first, second in between
        if first not in broken and second not in broken
        for a, b in product(members[first], members[second])
    }
    return Closure(sorted(same - labels.keys()), sorted(different - labels.keys()))


def _groups(positive: list[tuple[int, int]], size: int) -> list[int]:
    """Group of each question: connected components over the positive pairs."""
    ends = np.array(positive, dtype=np.int64).reshape(-1, 2)
    edges = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(size, size))
    return connected_components(edges, directed=False)[1].tolist() if size else []
