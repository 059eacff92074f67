"""Pairs of one split: groups that share their first question, as in the competition."""

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from .concepts import Concept, Content, difference

# (positive, negative) questions per first question: mostly two and three, as in the competition.
GROUP_SHAPES = [(2, 3), (2, 3), (2, 3), (1, 2), (3, 4), (1, 3), (3, 3), (2, 2)]

# How often a kind of negative is drawn where it exists; the kinds not listed weigh 2.
KIND_WEIGHT = {"other_topic": 1, "negation": 6}
# How often a negative of the same intent repeats the first question's wording but for one slot.
ECHO_RATE = 0.5


@dataclass(frozen=True)
class Pair:
    """A row to be written; `kind` says how query2 differs in meaning ("same" for positives)."""

    category: str
    query1: str
    query2: str
    kind: str


class SplitWriter:
    """Composes the pairs of one split from the concepts that belong to it."""

    def __init__(
        self, content: Content, concepts: dict[str, list[Concept]], rng: random.Random
    ) -> None:
        self._content = content
        self._concepts = concepts
        self._all = list(dict.fromkeys(c for group in concepts.values() for c in group))
        self._rng = rng
        self._asked: set[Concept] = set()
        self._seen: set[frozenset[str]] = set()

    def pairs(self, disease: str, rows: int) -> list[Pair]:
        """The rows of one category, in groups that share their first question."""
        found: list[Pair] = []
        for anchor in self._anchors(disease):
            found += self._group(disease, anchor)
            if len(found) >= rows:
                return found[:rows]
        raise ValueError(f"only {len(found)} pairs for {disease}: add intents or fillers")

    def _anchors(self, disease: str) -> Iterator[Concept]:
        """Unasked concepts, one of each intent in turn: large intents must not dominate."""
        by_intent: dict[str, list[Concept]] = defaultdict(list)
        for concept in self._concepts[disease]:
            by_intent[concept.intent.name].append(concept)
        queues = list(by_intent.values())
        self._rng.shuffle(queues)
        for queue in queues:
            self._rng.shuffle(queue)
        for turn in zip_longest(*queues):
            for concept in turn:
                if concept and concept not in self._asked:
                    self._asked.add(concept)
                    yield concept

    def _group(self, disease: str, anchor: Concept) -> list[Pair]:
        positives, negatives = self._rng.choice(GROUP_SHAPES)
        first, *others = self._rng.sample(anchor.intent.phrasings, 1 + positives)
        query1 = self._content.ask(anchor, first, self._rng)
        answers = [("same", self._content.ask(anchor, other, self._rng)) for other in others]
        for kind, concept in self._negatives(disease, anchor, negatives):
            phrasing = self._rng.choice(concept.intent.phrasings)
            if concept.intent == anchor.intent and self._rng.random() < ECHO_RATE:
                phrasing = first
            answers.append((kind, self._content.ask(concept, phrasing, self._rng)))
        self._rng.shuffle(answers)
        group = []
        for kind, query2 in answers:
            key = frozenset((query1, query2))
            if key not in self._seen:
                self._seen.add(key)
                group.append(Pair(disease, query1, query2, kind))
        return group

    def _negatives(self, disease: str, anchor: Concept, count: int) -> list[tuple[str, Concept]]:
        """Draw concepts that differ from the anchor in one way, first the way, then the concept."""
        in_category = set(self._concepts[disease])
        by_kind: dict[str, list[Concept]] = defaultdict(list)
        for concept in self._all:
            kind = difference(anchor, concept)
            # Only another disease may lead out of the category.
            if kind and (concept in in_category or kind == "other_disease"):
                by_kind[kind].append(concept)
        drawn = []
        for _ in range(count):
            weights = [KIND_WEIGHT.get(kind, 2) for kind in by_kind]
            kind = self._rng.choices(list(by_kind), weights)[0]
            # First an intent, then one of its concepts: slots would else decide how often
            # an intent is drawn.
            intent = self._rng.choice(list(dict.fromkeys(c.intent for c in by_kind[kind])))
            concept = self._rng.choice([c for c in by_kind[kind] if c.intent == intent])
            by_kind[kind].remove(concept)
            if not by_kind[kind]:
                del by_kind[kind]
            drawn.append((kind, concept))
        return drawn
