"""Words or characters of the training questions, numbered; in the place of a tokenizer."""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ....data.entities import words

UNKNOWN = 0


def characters(text: str) -> Sequence[str]:
    """The characters of a text, without white space."""
    return [character for character in text if not character.isspace()]


SEGMENTERS: dict[str, Callable[[str], Sequence[str]]] = {"characters": characters, "words": words}


@dataclass(frozen=True)
class TextVocabulary:
    """Calls like a tokenizer of transformers, as far as the pipeline calls one.

    Attributes:
        unit: "characters" or "words".
        units: the known ones; number 0 stands for every other.
    """

    unit: str
    units: tuple[str, ...]

    @classmethod
    def of(cls, questions: Iterable[str], unit: str) -> "TextVocabulary":
        """All units of `questions`, in order of first appearance."""
        found = dict.fromkeys(u for text in questions for u in segment(text, unit))
        return cls(unit, ("<unk>", *found))

    def __len__(self) -> int:
        return len(self.units)

    @property
    def backend_tokenizer(self) -> None:
        """There is none."""

    @property
    def all_special_ids(self) -> list[int]:
        return [UNKNOWN]

    def __call__(
        self, *texts: Sequence[str], truncation: bool = True, max_length: int = 64, **_: Any
    ) -> dict[str, list[list[int]]]:
        """Numbers of each text's units, at least one, at most `max_length`."""
        number = {unit: index for index, unit in enumerate(self.units)}
        rows = [[number.get(u, UNKNOWN) for u in segment(text, self.unit)] for text in texts[0]]
        return {"input_ids": [(row or [UNKNOWN])[:max_length] for row in rows]}


def segment(text: str, unit: str) -> list[str]:
    """A text's units, in lower case and NFKC, so that ＣＴ is ct."""
    return list(SEGMENTERS[unit](unicodedata.normalize("NFKC", text).lower()))
