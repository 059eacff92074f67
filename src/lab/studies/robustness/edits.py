"""Small edits of a question that leave its meaning: what a hurried patient types."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from omegaconf import OmegaConf

WORDS = Path(__file__).with_name("words.yaml")
# A dropped or exchanged one of these changes what is asked.
DECISIVE = frozenset("不没无非别未勿有能可会是男女左右大小多少前后0123456789一二三四五六七八九十")


@cache
def _words() -> dict[str, list[list[str]]]:
    """Lists of words that mean the same, and of characters that sound the same."""
    return OmegaConf.to_container(OmegaConf.load(WORDS))  # type: ignore[return-value]


@cache
def _homophones() -> dict[str, list[str]]:
    groups = _words()["homophones"]
    return {own: [other for other in group if other != own] for group in groups for own in group}


@cache
def _synonyms() -> dict[str, list[str]]:
    """Word → what may stand in its place, longest words first: 怎么办 before 怎么."""
    groups = _words()["synonyms"]
    found = {own: [other for other in group if other != own] for group in groups for own in group}
    return dict(sorted(found.items(), key=lambda item: (-len(item[0]), item[0])))


def typo(text: str, rng: np.random.Generator) -> str:
    """One character replaced by one that sounds the same, as an input method does by mistake.

    Where none of the list occurs, two neighbours are exchanged.
    """
    places = [index for index, character in enumerate(text) if character in _homophones()]
    if places:
        at = int(rng.choice(places))
        return text[:at] + str(rng.choice(_homophones()[text[at]])) + text[at + 1 :]
    pairs = [
        index
        for index in range(len(text) - 1)
        if text[index] != text[index + 1] and not DECISIVE & {text[index], text[index + 1]}
    ]
    if not pairs:
        return text
    at = int(rng.choice(pairs))
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def dropped_character(text: str, rng: np.random.Generator) -> str:
    """One letter or character less, but none that decides what is asked, and never the last one."""
    places = [
        index
        for index, character in enumerate(text)
        if character.isalnum() and character not in DECISIVE
    ]
    if len(places) < 2:
        return text
    at = int(rng.choice(places))
    return text[:at] + text[at + 1 :]


def synonym(text: str, rng: np.random.Generator) -> str:
    """One word replaced by another of the same meaning; unchanged where none of the list occurs."""
    found = []
    position = 0
    while position < len(text):
        word = next((w for w in _synonyms() if text.startswith(w, position)), None)
        if word:
            found.append((position, word))
        position += len(word) if word else 1
    if not found:
        return text
    at, word = found[int(rng.integers(len(found)))]
    return text[:at] + str(rng.choice(_synonyms()[word])) + text[at + len(word) :]


EDITS: dict[str, Callable[[str, np.random.Generator], str]] = {
    "typo": typo,
    "dropped character": dropped_character,
    "synonym": synonym,
}
