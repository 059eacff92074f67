"""More training pairs for one fold: transitive closure and entity replacement."""

from collections.abc import Iterator
from itertools import islice, zip_longest
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..config import AugmentConfig
from .closure import transitive_closure
from .entities import exchange, shared_names, targets
from .graph import Pair, pair_key, pair_keys, wording

HARD_NEGATIVE_SHARE = 0.25  # of the negatives by entity replacement


class Added(NamedTuple):
    """A pair that augmentation makes."""

    category: str
    query1: str
    query2: str
    label: int


class Known(NamedTuple):
    """What pairs are derived from; questions are keyed by `graph.wording`."""

    questions: dict[str, tuple[str, str]]  # text and category
    labels: dict[Pair, set[int]]  # that a pair carries; none when unlabelled
    banned: set[Pair]  # pairs that may not be added


def augment(
    train: pd.DataFrame, config: AugmentConfig, seed: int, forbidden: set[Pair]
) -> pd.DataFrame:
    """Add derived pairs to the training part of one fold.

    Closure adds up to `config.closure` x rows pairs of training questions (see closure.py).
    Entity replacement adds up to `config.entity` x rows copies of pairs in which both questions
    name the same single disease or drug: exchanged for another in both (label kept), or, of a
    positive pair, in one of them (a hard negative). Each class gets its share of the training
    labels; where it has too few candidates, the other one is not filled up.

    Args:
        train: pair frame; rows with label -1 are kept and nothing is derived from them.
        seed: the same seed adds the same pairs, whatever the order of the rows.
        forbidden: pairs (as of `graph.pair_key`) of the validation part, dev and test. None of
            them is added, and entity replacement makes none of their questions.

    Returns:
        The original rows, then the added ones with ids 'closure-0', ..., 'entity-0', ..., and a
        column `source` in {'original', 'closure', 'entity'}. An added pair is new and never a
        question with itself, both judged by `graph.wording`: punctuation makes no difference.
    """
    texts = [*zip(train["query1"], train["category"]), *zip(train["query2"], train["category"])]
    # Of several spellings the smallest comes last and stays, so that row order is no matter.
    questions = {wording(entry[0]): entry for entry in sorted(texts, reverse=True)}
    labels: dict[Pair, set[int]] = {}
    for pair, label in zip(pair_keys(train, wording), train["label"]):
        labels.setdefault(pair, set()).update({int(label)} & {0, 1})
    known = Known(questions, labels, {pair_key(*pair, wording) for pair in forbidden})

    share = float((train["label"] == 1).sum() / max(1, (train["label"] >= 0).sum()))
    parts = [train.assign(source="original")]
    ways = [("closure", config.closure, _closure), ("entity", config.entity, _entity)]
    for stream, (source, ratio, derive) in enumerate(ways):
        # A generator each: the entity pairs stay the same when closure is switched off.
        rng = np.random.default_rng([seed, stream])
        wanted = ratio * len(train)
        quota = {1: round(wanted * share), 0: round(wanted) - round(wanted * share)}
        parts.append(_rows(source, derive(known, quota, rng) if ratio else [], rng))
    return pd.concat(parts, ignore_index=True).astype(train.dtypes.to_dict())


def _closure(known: Known, quota: dict[int, int], rng: np.random.Generator) -> list[Added]:
    added = []
    for label, pairs in transitive_closure(known.labels).items():
        allowed = [pair for pair in pairs if pair not in known.banned]
        for index in rng.permutation(len(allowed))[: quota[label]]:
            (query1, category), (query2, _) = (known.questions[key] for key in allowed[index])
            added.append(Added(category, query1, query2, label))
    return added


def _entity(known: Known, quota: dict[int, int], rng: np.random.Generator) -> list[Added]:
    pairs = [
        Added(known.questions[a][1], known.questions[a][0], known.questions[b][0], min(labels))
        for (a, b), labels in sorted(known.labels.items())
        if len(labels) == 1
    ]
    old = known.questions.keys() | {question for pair in known.banned for question in pair}
    taken: set[Pair] = set()  # a pair made twice could get two labels
    hard = round(HARD_NEGATIVE_SHARE * quota[0])
    added: list[Added] = []
    for label, both, count in ((1, True, quota[1]), (0, True, quota[0] - hard), (1, False, hard)):
        sources = [pair for pair in pairs if pair.label == label]
        added += islice(_exchanged(sources, both, old, taken, rng), count)
    return added


def _exchanged(
    pairs: list[Added], both: bool, old: set[str], taken: set[Pair], rng: np.random.Generator
) -> Iterator[Added]:
    """Pairs with another name in both questions, or in the second alone, where it means label 0.

    Each source pair is used once before one is used again. Only questions outside `old` are
    made, and no pair of `taken`, to which the new ones are added.
    """
    sources = [
        (pair, kind, targets(kind, name, rng))
        for pair in pairs
        for kind, name in shared_names(pair.query1, pair.query2)
    ]
    sources = [sources[index] for index in rng.permutation(len(sources))]
    for turn in zip_longest(*(names for *_, names in sources)):
        for (pair, kind, _), name in zip(sources, turn):
            if name is None:
                continue
            query2 = exchange(pair.query2, kind, name)
            query1 = exchange(pair.query1, kind, name) if both else pair.query1
            key = pair_key(query1, query2, wording)
            made = set(key) if both else {wording(query2)}
            if made.isdisjoint(old) and key[0] != key[1] and key not in taken:
                taken.add(key)
                yield Added(pair.category, query1, query2, pair.label if both else 0)


def _rows(source: str, added: list[Added], rng: np.random.Generator) -> pd.DataFrame:
    """Added pairs as rows in random order, either question first."""
    rows = []
    for pair in (added[index] for index in rng.permutation(len(added))):
        turned = pair._replace(query1=pair.query2, query2=pair.query1)
        rows.append(turned if rng.random() < 0.5 else pair)
    table = pd.DataFrame(rows, columns=list(Added._fields))
    return table.assign(id=[f"{source}-{index}" for index in range(len(rows))], source=source)
