"""More training pairs for one fold: transitive closure and entity replacement."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..config import AugmentConfig
from .closure import Pair, transitive_closure
from .entities import exchange, shared_names, targets
from .graph import wording

HARD_NEGATIVE_SHARE = 0.25  # of the negatives by entity replacement


class Added(NamedTuple):
    """A pair that augmentation makes."""

    category: str
    query1: str
    query2: str
    label: int


def augment(
    train: pd.DataFrame, config: AugmentConfig, seed: int, forbidden: set[tuple[str, str]]
) -> pd.DataFrame:
    """Add derived pairs to the training part of one fold.

    Closure adds up to `config.closure` x rows pairs of training questions (see closure.py).
    Entity replacement adds up to `config.entity` x rows copies of pairs in which both questions
    name the same single disease or drug: exchanged for another in both (label kept), or, of a
    positive pair, in one of them (a hard negative). Each class gets its share of the training
    labels; where it has too few candidates, the other one is not filled up.
    `config.swap` is applied in batching.

    Args:
        train: pair frame; rows with label -1 are kept and nothing is derived from them.
        config: the two ratios.
        seed: the same seed adds the same pairs, whatever the order of the rows.
        forbidden: pairs (as of `graph.pair_key`) of the validation part, dev and test. None of
            them is added, and entity replacement makes none of their questions.

    Returns:
        The original rows, then the added ones with ids 'closure-0', ..., 'entity-0', ..., and a
        column `source` in {'original', 'closure', 'entity'}. An added pair is new and never a
        question with itself, both judged by `graph.wording`: punctuation makes no difference.
    """
    questions = _questions(train)
    labels = _labels(train)
    banned = {_sorted(wording(first), wording(second)) for first, second in forbidden}
    share = float((train["label"] == 1).sum() / max(1, (train["label"] >= 0).sum()))

    # A generator each: the entity pairs stay the same when closure is switched off.
    closure_rng, entity_rng = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    closure = _closure(
        questions, labels, banned, _quota(config.closure * len(train), share), closure_rng
    )
    entity = _entity(
        questions, labels, banned, _quota(config.entity * len(train), share), entity_rng
    )
    parts = [
        train.assign(source="original"),
        _rows("closure", closure, closure_rng),
        _rows("entity", entity, entity_rng),
    ]
    return pd.concat(parts, ignore_index=True).astype(train.dtypes.to_dict())


def _questions(train: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """wording -> (text, category). Of several spellings the smallest, so row order is no matter."""
    found: dict[str, tuple[str, str]] = {}
    for column in ("query1", "query2"):
        for text, category in zip(train[column], train["category"]):
            key, entry = wording(text), (text, category)
            found[key] = min(found.get(key, entry), entry)
    return found


def _labels(train: pd.DataFrame) -> dict[Pair, set[int]]:
    """The labels that each unordered pair of wordings carries; none when unlabelled."""
    found: dict[Pair, set[int]] = {}
    for query1, query2, label in zip(train["query1"], train["query2"], train["label"]):
        pair = _sorted(wording(query1), wording(query2))
        found.setdefault(pair, set()).update({int(label)} & {0, 1})
    return found


def _sorted(first: str, second: str) -> Pair:
    return (first, second) if first <= second else (second, first)


def _quota(wanted: float, share: float) -> dict[int, int]:
    """How many pairs of each label make `wanted` pairs with the given share of positives."""
    positives = round(wanted * share)
    return {1: positives, 0: round(wanted) - positives}


def _closure(
    questions: dict[str, tuple[str, str]],
    labels: dict[Pair, set[int]],
    banned: set[Pair],
    quota: dict[int, int],
    rng: np.random.Generator,
) -> list[Added]:
    if not any(quota.values()):
        return []
    derived = transitive_closure(labels)
    added = []
    for label, pairs in ((1, derived.same), (0, derived.different)):
        allowed = [pair for pair in pairs if pair not in banned]
        for index in rng.permutation(len(allowed))[: quota[label]]:
            (query1, category), (query2, _) = (questions[key] for key in allowed[index])
            added.append(Added(category, query1, query2, label))
    return added


def _entity(
    questions: dict[str, tuple[str, str]],
    labels: dict[Pair, set[int]],
    banned: set[Pair],
    quota: dict[int, int],
    rng: np.random.Generator,
) -> list[Added]:
    if not any(quota.values()):
        return []
    known = questions.keys() | {question for pair in banned for question in pair}
    taken: set[Pair] = set()  # a pair made twice could get two labels
    pairs = {
        label: [
            Added(questions[a][1], questions[a][0], questions[b][0], label)
            for a, b in sorted(labels)
            if labels[a, b] == {label}
        ]
        for label in (0, 1)
    }
    hard = round(HARD_NEGATIVE_SHARE * quota[0])
    added: list[Added] = []
    for label, both, count in ((1, True, quota[1]), (0, True, quota[0] - hard), (1, False, hard)):
        added += islice(_exchanged(pairs[label], both, known, taken, rng), count)
    return added


def _exchanged(
    pairs: list[Added], both: bool, known: set[str], taken: set[Pair], rng: np.random.Generator
) -> Iterator[Added]:
    """Pairs with another name in both questions, or in the second alone, where it means label 0.

    Each source pair is used once before one is used again. Only questions outside `known` are
    made, and no pair of `taken`, to which the new ones are added.
    """
    sources = [
        (pair, kind, targets(kind, name, rng))
        for pair in pairs
        for kind, name in shared_names(pair.query1, pair.query2)
    ]
    order = rng.permutation(len(sources))
    for turn in range(max((len(names) for *_, names in sources), default=0)):
        for pair, kind, names in (sources[index] for index in order):
            if turn >= len(names):
                continue
            query2 = exchange(pair.query2, kind, names[turn])
            query1 = exchange(pair.query1, kind, names[turn]) if both else pair.query1
            key = _sorted(wording(query1), wording(query2))
            fresh = wording(query2) not in known and (not both or wording(query1) not in known)
            if fresh and key[0] != key[1] and key not in taken:
                taken.add(key)
                yield Added(pair.category, query1, query2, pair.label if both else 0)


def _rows(source: str, added: list[Added], rng: np.random.Generator) -> pd.DataFrame:
    """Added pairs as rows in random order, either question first."""
    shuffled = [added[index] for index in rng.permutation(len(added))]
    flipped = [
        pair._replace(query1=pair.query2, query2=pair.query1) if rng.random() < 0.5 else pair
        for pair in shuffled
    ]
    rows = pd.DataFrame(flipped, columns=list(Added._fields))
    return rows.assign(id=[f"{source}-{index}" for index in range(len(rows))], source=source)
