"""The question graph: questions are nodes, pairs are edges."""

import re
import unicodedata
from collections.abc import Callable
from itertools import chain

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import DisjointSet

Pair = tuple[str, str]  # the keys of two questions, sorted

_WORDS = re.compile(r"[\w\s]+")


def question_key(text: str) -> str:
    """The identity of a question: what has to agree for two texts to count as the same one.

    Letters, digits and white space are folded with NFKC (Unicode Standard Annex 15), white
    space at the ends is dropped: 'ＣＴ' is 'CT'. Punctuation stays as it is, because '吗?' and
    '吗？' are two entries of the competition files and the published counts (101 exact pairs of
    the article's split, 1,355 components of train and dev) tell them apart; NFKC over
    everything would give 102 and 1,341. That strictness would hide a leak, so whatever guards
    against one (folds, augmentation, the audit's verdict) compares `wording` as well.
    """
    return _WORDS.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text).strip()


def wording(text: str) -> str:
    """A question without punctuation, white space, letter case and character width.

    Coarser than `question_key`: equal keys imply equal wordings. Two questions with the same
    wording may never stand on both sides of a split. A text without any letter or digit is its
    own wording.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if char.isalnum()) or question_key(text)


def pair_key(query1: str, query2: str, key: Callable[[str], str] = question_key) -> Pair:
    """The identity of an unordered pair: both question keys, sorted."""
    first, second = key(query1), key(query2)
    return (first, second) if first <= second else (second, first)


def pair_keys(frame: pd.DataFrame, key: Callable[[str], str] = question_key) -> list[Pair]:
    """`pair_key` of every row of a pair frame."""
    return [pair_key(*pair, key) for pair in zip(frame["query1"], frame["query2"], strict=True)]


def components(*frames: pd.DataFrame, key: Callable[[str], str] = question_key) -> np.ndarray:
    """Connected component of every row of the question graph that all frames make together.

    Returns:
        int64 [rows of all frames]; components are numbered 0, 1, ... in order of first
        appearance. The rows of the first frame are `components(a, b)[: len(a)]`.
    """
    pairs = [pair for frame in frames for pair in pair_keys(frame, key)]
    joined = DisjointSet(chain.from_iterable(pairs))
    for first, second in pairs:
        joined.merge(first, second)
    return pd.factorize(np.array([joined[first] for first, _ in pairs], dtype=object))[0]
