"""Diseases and drugs in questions: find them with jieba, exchange them for others."""

import re
from functools import cache, cached_property
from pathlib import Path

import jieba
import numpy as np
from omegaconf import OmegaConf
from pydantic import BaseModel

LEXICON = Path(__file__).with_name("lexicon.yaml")
PREFERRED_SHARE = 0.75  # how often the preferred names are tried before all others


class Lexicon(BaseModel):
    """lexicon.yaml: names that may be exchanged for one another, and where not."""

    kinds: dict[str, dict[str, list[str]]]  # "diseases", "drugs" -> name -> others of the same
    preferred: frozenset[str]
    not_after: tuple[str, ...]  # endings of a word behind which a name is part of a longer one
    not_before: frozenset[str]  # words before which a disease is

    @cached_property
    def name_of(self) -> dict[str, tuple[str, str]]:
        """Any known name -> its kind, and the name that is written."""
        return {
            alias: (kind, name)
            for kind, names in self.kinds.items()
            for name, others in names.items()
            for alias in (name, *others)
        }


@cache
def load_lexicon() -> Lexicon:
    """Read `lexicon.yaml`."""
    return Lexicon.model_validate(OmegaConf.to_container(OmegaConf.load(LEXICON)))


@cache
def _any_name() -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, load_lexicon().name_of)))


@cache
def _tokenizer() -> jieba.Tokenizer:
    """A tokenizer of our own: words added to jieba's shared one would change it for everybody."""
    # Filled by hand without a cache file in the temporary directory and messages.
    tokenizer = jieba.Tokenizer()
    with tokenizer.get_dict_file() as file:
        tokenizer.FREQ, tokenizer.total = jieba.Tokenizer.gen_pfdict(file)
    tokenizer.initialized = True
    for word in load_lexicon().name_of:
        tokenizer.add_word(word)
    return tokenizer


@cache  # a question stands in several pairs
def words(text: str) -> tuple[str, ...]:
    """jieba's words of a text; joined they are the text again."""
    return tuple(_tokenizer().cut(text, HMM=False))


def mentions(text: str) -> dict[str, set[str]]:
    """Names in a question by kind, e.g. {"diseases": {"感冒"}}; kinds without one are absent.

    A name that is part of a longer one which the lexicon does not have (出血性肺炎, 感冒药) is
    reported in the longer form, for which nothing can be exchanged.
    """
    lexicon, any_name = load_lexicon(), _any_name()
    found: dict[str, set[str]] = {}
    tokens = words(text)
    for before, token, after in zip(("", *tokens), tokens, (*tokens[1:], "")):
        inside = any_name.search(token)
        if inside is None:
            continue
        kind, name = lexicon.name_of.get(token, (lexicon.name_of[inside[0]][0], token))
        if before.endswith(lexicon.not_after):
            name = before + token
        elif kind == "diseases" and after in lexicon.not_before:
            name = token + after
        found.setdefault(kind, set()).add(name)
    return found


def shared_names(query1: str, query2: str) -> list[tuple[str, str]]:
    """(kind, name) for each kind of which both questions have one and the same single name.

    Only then does an exchange in both questions keep their relation, and an exchange in one
    turn it into "not the same".
    """
    first, second = mentions(query1), mentions(query2)
    return [
        (kind, name)
        for kind, names in load_lexicon().kinds.items()
        for name in names
        if first.get(kind) == second.get(kind) == {name}
    ]


def exchange(text: str, kind: str, target: str) -> str:
    """The question with every name of a kind, synonyms included, replaced by `target`."""
    name_of = load_lexicon().name_of
    return "".join(target if name_of.get(word, ("",))[0] == kind else word for word in words(text))


def targets(kind: str, name: str, rng: np.random.Generator) -> list[str]:
    """All other names of a kind in random order, mostly with the preferred ones in front."""
    lexicon = load_lexicon()
    others = [other for other in lexicon.kinds[kind] if other != name]
    order = [others[index] for index in rng.permutation(len(others))]
    if rng.random() < PREFERRED_SHARE:
        order.sort(key=lambda other: other not in lexicon.preferred)  # stable
    return order
