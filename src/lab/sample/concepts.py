"""What can be asked: intents, the values of their slots, and how a question is put into words."""

import random
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from string import Formatter

from omegaconf import OmegaConf

from ...data.sources import SAMPLE

INTENTS = SAMPLE / "intents.yaml"

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
        """Slot name → value."""
        return dict(zip(self.intent.slots, self.values, strict=True))


class Content:
    """The intents, the values that fill their slots, and the forms in which a value appears."""

    def __init__(self, path: Path = INTENTS) -> None:
        raw: dict = OmegaConf.to_container(OmegaConf.load(path))  # type: ignore[assignment]
        self._raw, self._diseases = raw, raw["diseases"]
        self.hidden: list[str] = raw["hidden_diseases"]
        self.visible = [name for name in self._diseases if name not in self.hidden]
        self._forms: dict[str, list[str]] = dict(raw["groups"])
        for name, disease in self._diseases.items():
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
        slots = {
            frozenset(field for _, field, _, _ in Formatter().parse(phrasing) if field)
            for phrasing in phrasings
        }
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
        """Everything that can be asked in the category of a disease."""
        entry = self._diseases[disease]
        fillers = {
            "disease": [disease],
            "drug": entry["drugs"],
            "symptom": entry["symptoms"],
            "group": entry.get("groups", list(self._raw["groups"])),
            "food": self._raw["foods"],
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
        forms = {
            slot: rng.choice(self._forms.get(value, [value]))
            for slot, value in concept.slots().items()
        }
        text = phrasing.format(**forms)
        if rng.random() < OPENER_RATE:
            text = rng.choice(self._raw["openers"]) + text
        if rng.random() < HALF_WIDTH_COMMA_RATE:
            text = text.replace("，", ",")
        return text + rng.choice(self._raw["endings"])


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
