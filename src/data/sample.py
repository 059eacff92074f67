"""Write the sample data set from data/sample/intents.yaml: `python -m src.data.sample OUT_DIR`.

Every question expresses a *concept*: an intent plus its slot values. Two questions mean the same
exactly when they share the concept, so labels need no judgement, and the data cannot contradict
itself. Each concept belongs to one split, which keeps the splits' questions apart. A negative
differs from the first question in one way only: another slot value, a negation, another intent.
"""

import csv
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product, zip_longest
from pathlib import Path
from string import Formatter

import click
from omegaconf import OmegaConf

INTENTS = Path(__file__).parents[2] / "data" / "sample" / "intents.yaml"
SEED = 231776

ROWS_PER_DISEASE = {"train": 150, "dev": 38, "test": 30}
# Dev and test get a larger share of the concepts than of the rows: a split's negatives come from
# its own concepts, and few concepts would leave few neighbours to confuse a question with.
CONCEPT_SHARE = {"train": 0.6, "dev": 0.2, "test": 0.2}
# (positive, negative) questions per first question: mostly two and three, as in the competition.
GROUP_SHAPES = [(2, 3), (2, 3), (2, 3), (1, 2), (3, 4), (1, 3), (3, 3), (2, 2)]
# The competition's dev file repeats some training questions; so does ours.
SHARED_DEV_PAIRS = 6

# How often a kind of negative is drawn where it exists; the kinds not listed weigh 2.
KIND_WEIGHT = {"other_topic": 1, "negation": 6}
# How often a negative of the same intent repeats the first question's wording but for one slot.
ECHO_RATE = 0.5

OPENER_RATE = 0.08
HALF_WIDTH_COMMA_RATE = 0.3


@dataclass(frozen=True)
class Intent:
    """One question patients ask, in several phrasings that share the same slots."""

    name: str
    topic: str
    phrasings: tuple[str, ...]
    slots: tuple[str, ...]
    diseases: tuple[str, ...]
    numbers: tuple[str, ...]
    negates: str | None


@dataclass(frozen=True)
class Concept:
    """A meaning: an intent and the value of each of its slots, in the intent's slot order."""

    intent: Intent
    values: tuple[str, ...]

    def slots(self) -> dict[str, str]:
        """Return slot name -> value."""
        return dict(zip(self.intent.slots, self.values, strict=True))


@dataclass(frozen=True)
class Pair:
    """A row to be written; `kind` says how query2 differs in meaning ("same" for positives)."""

    category: str
    query1: str
    query2: str
    kind: str

    @property
    def label(self) -> int:
        """Return 1 when both questions mean the same."""
        return int(self.kind == "same")


class Content:
    """The intents, the values that fill their slots, and the forms in which a value appears."""

    def __init__(self, path: Path = INTENTS) -> None:
        raw = OmegaConf.to_container(OmegaConf.load(path))
        self.hidden: list[str] = raw["hidden_diseases"]
        self.visible = [name for name in raw["diseases"] if name not in self.hidden]
        self._diseases = raw["diseases"]
        self._groups = raw["groups"]
        self._foods = raw["foods"]
        self._openers = raw["openers"]
        self._endings = raw["endings"]
        self._forms: dict[str, list[str]] = dict(raw["groups"])
        for name, disease in raw["diseases"].items():
            self._forms[name] = [name, *disease.get("also", [])]
        for digits, word in raw["numerals"].items():
            self._forms[str(digits)] = [str(digits), word]
        self.intents = [
            self._intent(name, topic, entry)
            for topic, entries in raw["topics"].items()
            for name, entry in entries.items()
        ]

    def _intent(self, name: str, topic: str, entry: dict) -> Intent:
        phrasings = tuple(entry["phrasings"].split("\n")[:-1])
        slots = {frozenset(field for _, field, _, _ in Formatter().parse(phrasing) if field)
                 for phrasing in phrasings}
        if len(slots) != 1:
            raise ValueError(f"the phrasings of {name} use different slots: {slots}")
        diseases = entry.get("only_for", list(self._diseases))
        return Intent(
            name=name,
            topic=topic,
            phrasings=phrasings,
            slots=tuple(sorted(slots.pop())),
            diseases=tuple(d for d in diseases if d not in entry.get("not_for", [])),
            numbers=tuple(str(number) for number in entry.get("numbers", [])),
            negates=entry.get("negates"),
        )

    def concepts(self, disease: str) -> list[Concept]:
        """Return everything that can be asked in the category of a disease."""
        entry = self._diseases[disease]
        fillers = {
            "disease": [disease],
            "drug": entry["drugs"],
            "symptom": entry["symptoms"],
            "group": entry.get("groups", list(self._groups)),
            "food": self._foods,
        }
        return [
            Concept(intent, values)
            for intent in self.intents
            if disease in intent.diseases
            for values in product(
                *({**fillers, "number": intent.numbers}[slot] for slot in intent.slots)
            )
        ]

    def ask(self, concept: Concept, phrasing: str, rng: random.Random) -> str:
        """Put a concept into words: slot forms, and a patient's punctuation."""
        forms = {slot: rng.choice(self._forms.get(value, [value]))
                 for slot, value in concept.slots().items()}
        text = phrasing.format(**forms)
        if rng.random() < OPENER_RATE:
            text = rng.choice(self._openers) + text
        if rng.random() < HALF_WIDTH_COMMA_RATE:
            text = text.replace("，", ",")
        return text + rng.choice(self._endings)


def difference(first: Concept, second: Concept) -> str | None:
    """Name the way in which two concepts differ; None when they do not differ in one way only."""
    one, other = first.slots(), second.slots()
    changed = [slot for slot in one if other.get(slot, one[slot]) != one[slot]]
    if first.intent == second.intent:
        return f"other_{changed[0]}" if len(changed) == 1 else None
    if changed:
        return None
    if first.intent.name == second.intent.negates or second.intent.name == first.intent.negates:
        return "negation"
    return "other_intent" if first.intent.topic == second.intent.topic else "other_topic"


def assign_splits(content: Content, rng: random.Random) -> dict[Concept, str]:
    """Give every concept to one split; the hidden diseases' own concepts go to test."""
    splits, shares = list(CONCEPT_SHARE), list(CONCEPT_SHARE.values())
    split_of_family: dict[tuple[str, str], str] = {}
    split_of: dict[Concept, str] = {}
    for disease in content.visible + content.hidden:
        for concept in content.concepts(disease):
            # A family is all that one intent and its negation ask about one disease or drug
            # (the first slot); it stays together, or dev would have few hard negatives.
            family = (concept.intent.negates or concept.intent.name, concept.values[0])
            if family not in split_of_family:
                hidden = disease in content.hidden
                split_of_family[family] = "test" if hidden else rng.choices(splits, shares)[0]
            split_of[concept] = split_of_family[family]
    return split_of


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
        """Return the rows of one category, in groups that share their first question."""
        found: list[Pair] = []
        for anchor in self._anchors(disease):
            found += self._group(disease, anchor)
            if len(found) >= rows:
                return found[:rows]
        raise ValueError(f"only {len(found)} pairs for {disease}: add intents or fillers")

    def _anchors(self, disease: str) -> Iterator[Concept]:
        """Yield unasked concepts, one of each intent in turn: large intents must not dominate."""
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

    def _negatives(
        self, disease: str, anchor: Concept, count: int
    ) -> list[tuple[str, Concept]]:
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


def build(content: Content, seed: int = SEED) -> dict[str, list[Pair]]:
    """Return the pairs of train, dev and test."""
    rng = random.Random(seed)
    split_of = assign_splits(content, rng)
    tables: dict[str, list[Pair]] = {}
    for split, rows in ROWS_PER_DISEASE.items():
        diseases = content.visible + (content.hidden if split == "test" else [])
        concepts = {disease: [c for c in content.concepts(disease) if split_of[c] == split]
                    for disease in diseases}
        writer = SplitWriter(content, concepts, rng)
        tables[split] = [pair for disease in diseases for pair in writer.pairs(disease, rows)]
    _share_questions(tables["train"], tables["dev"], rng)
    return tables


def _share_questions(train: list[Pair], dev: list[Pair], rng: random.Random) -> None:
    """Let a few unrelated dev negatives quote a training question of their category."""
    unrelated = [i for i, pair in enumerate(dev) if pair.kind == "other_topic"]
    for i in rng.sample(unrelated, SHARED_DEV_PAIRS):
        # Still a negative: no concept is in both splits.
        quoted = rng.choice([pair.query1 for pair in train if pair.category == dev[i].category])
        dev[i] = replace(dev[i], query2=quoted)


def write(pairs: list[Pair], path: Path, labelled: bool) -> None:
    """Write a table in the competition's format; unlabelled rows get -1."""
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["id", "category", "query1", "query2", "label"])
        for i, pair in enumerate(pairs):
            label = pair.label if labelled else -1
            out.writerow([i, pair.category, pair.query1, pair.query2, label])


@click.command()
@click.argument("out_dir", type=click.Path(file_okay=False, path_type=Path))
def main(out_dir: Path) -> None:
    """Write train.csv, dev.csv and test.csv to OUT_DIR."""
    out_dir.mkdir(parents=True, exist_ok=True)
    for split, pairs in build(Content()).items():
        write(pairs, out_dir / f"{split}.csv", labelled=split != "test")
        click.echo(f"{split}: {len(pairs)} pairs")


if __name__ == "__main__":
    main()
