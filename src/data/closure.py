"""Transitive closure: pairs that follow from the labelled ones.

A=B and A=C give B=C; A=B and A≠C give B≠C. "The same question" is an equivalence, so questions
joined by positive pairs are paraphrases, all of such a set mean the same, and one negative pair
between two sets of paraphrases tells all of the one apart from all of the other.
"""

from collections.abc import Iterable, Mapping
from itertools import chain, combinations, product

from scipy.cluster.hierarchy import DisjointSet

from .graph import Pair


def transitive_closure(labels: Mapping[Pair, set[int]]) -> dict[int, list[Pair]]:
    """Derive what follows from labelled pairs of questions.

    A group in which some pair is labelled negative contradicts itself: every pair inside can be
    derived with both labels, and what its members mean is open. Nothing is derived from it.

    Args:
        labels: the labels that each pair was given, a subset of {0, 1}; a pair with none or with
            both is evidence for nothing.

    Returns:
        The pairs with label 1 and those with label 0, sorted, without those that were given.
    """
    paraphrases = DisjointSet(chain.from_iterable(labels))
    for pair, found in labels.items():
        if found == {1}:
            paraphrases.merge(*pair)
    apart = {(paraphrases[a], paraphrases[b]) for (a, b), found in labels.items() if found == {0}}
    broken = {first for first, second in apart if first == second}
    members = {paraphrases[next(iter(subset))]: subset for subset in paraphrases.subsets()}
    same = (combinations(group, 2) for root, group in members.items() if root not in broken)
    different = (product(members[a], members[b]) for a, b in apart if broken.isdisjoint((a, b)))
    return {1: _new(same, labels), 0: _new(different, labels)}


def _new(found: Iterable[Iterable[Pair]], labels: Mapping[Pair, set[int]]) -> list[Pair]:
    pairs = {(a, b) if a < b else (b, a) for a, b in chain.from_iterable(found)}
    return sorted(pairs - labels.keys())
