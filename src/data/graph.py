"""The question graph: questions are nodes, pairs are edges. Who has seen what, and is it a leak?"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

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


def pair_key(query1: str, query2: str) -> tuple[str, str]:
    """The identity of an unordered pair: both question keys, sorted."""
    first, second = question_key(query1), question_key(query2)
    return (first, second) if first <= second else (second, first)


def components(*frames: pd.DataFrame, key: Callable[[str], str] = question_key) -> np.ndarray:
    """Connected component of every row of the question graph that all frames make together.

    Args:
        frames: pair frames; their rows are numbered through in the order given.
        key: what identifies a question.

    Returns:
        int64 [rows of all frames]; components are numbered 0, 1, ... in order of first
        appearance. The rows of the first frame are `components(a, b)[: len(a)]`.
    """
    queries1 = [key(text) for frame in frames for text in frame["query1"]]
    queries2 = [key(text) for frame in frames for text in frame["query2"]]
    nodes, _ = pd.factorize(np.array(queries1 + queries2, dtype=object))
    if not queries1:
        return np.zeros(0, dtype=np.int64)
    start, end = np.split(nodes, 2)
    size = nodes.max() + 1
    edges = coo_array((np.ones(len(start), dtype=np.int8), (start, end)), shape=(size, size))
    _, labels = connected_components(edges, directed=False)
    ids, _ = pd.factorize(labels[start])  # renumbers by first appearance
    return ids.astype(np.int64)


@dataclass(frozen=True)
class Audit:
    """What an evaluation file shares with a training file. Counts; shares are of all pairs."""

    pairs: int  # evaluation pairs
    exact_pairs: int  # stand in training, in either order
    both_seen: int  # pairs with both questions in training
    any_seen: int  # pairs with at least one question in training
    new_pairs: int  # pairs with neither question in training, in any spelling
    questions: int  # distinct evaluation questions
    shared_questions: int  # ... that stand in training
    respelled_questions: int  # ... that do so only up to punctuation, width and letter case
    crossing_components: int  # components with pairs on both sides
    contradictory_labels: int  # unordered pairs with both labels, within or across the files

    @property
    def exact_share(self) -> float:
        return self._share(self.exact_pairs)

    @property
    def both_share(self) -> float:
        return self._share(self.both_seen)

    @property
    def any_share(self) -> float:
        return self._share(self.any_seen)

    @property
    def new_share(self) -> float:
        return self._share(self.new_pairs)

    def _share(self, count: int) -> float:
        return count / self.pairs if self.pairs else 0.0

    @property
    def verdict(self) -> str:
        """One short line that stands beside every score measured on the evaluation file."""
        if self.exact_pairs or self.both_seen:
            return (
                f"leaky: {self.exact_pairs} of {self.pairs} pairs ({_percent(self.exact_share)})"
                f" stand in training, both questions seen in {100 * self.both_share:.2f} %"
            )
        if self.any_seen:
            return (
                f"leaky: no pair stands in training, but one of its questions does in "
                f"{self.any_seen} of {self.pairs} ({_percent(self.any_share)})"
            )
        if self.respelled_questions:
            return (
                f"leaky: {self.respelled_questions} of {self.questions} questions differ from a "
                "training question only in punctuation, width or letter case"
            )
        return "no leak: all questions new"

    def as_dict(self) -> dict[str, Any]:
        """Counts, shares and verdict, ready for JSON."""
        return asdict(self) | {
            "exact_share": self.exact_share,
            "both_share": self.both_share,
            "any_share": self.any_share,
            "new_share": self.new_share,
            "verdict": self.verdict,
        }


def _percent(share: float) -> str:
    """One decimal, two below one per cent: a small leak must not read as none."""
    return f"{100 * share:.1f} %" if share >= 0.01 else f"{100 * share:.2f} %"


def audit(train: pd.DataFrame, evaluation: pd.DataFrame) -> Audit:
    """Compare an evaluation file with the training file, both as pair frames.

    The order of rows and of the two questions in a pair makes no difference.
    """
    train_pairs, pairs = _pair_keys(train), _pair_keys(evaluation)
    seen = {key for pair in train_pairs for key in pair}
    seen_wordings = {wording(key) for key in seen}
    questions = {key for pair in pairs for key in pair}
    unseen = questions - seen
    known_pairs = set(train_pairs)

    component = components(train, evaluation)
    crossing = np.intersect1d(component[: len(train)], component[len(train) :])

    labels: dict[tuple[str, str], set[int]] = {}
    for pair, label in zip(train_pairs + pairs, [*train["label"], *evaluation["label"]]):
        if label in (0, 1):  # -1 is "unlabelled" and contradicts nothing
            labels.setdefault(pair, set()).add(int(label))

    return Audit(
        pairs=len(pairs),
        exact_pairs=sum(pair in known_pairs for pair in pairs),
        both_seen=sum(first in seen and second in seen for first, second in pairs),
        any_seen=sum(first in seen or second in seen for first, second in pairs),
        new_pairs=int(new_question_rows(train, evaluation).sum()),
        questions=len(questions),
        shared_questions=len(questions) - len(unseen),
        respelled_questions=sum(wording(key) in seen_wordings for key in unseen),
        crossing_components=len(crossing),
        contradictory_labels=sum(len(both) == 2 for both in labels.values()),
    )


def new_question_rows(train: pd.DataFrame, evaluation: pd.DataFrame) -> np.ndarray:
    """Which evaluation pairs have two questions that training does not know in any spelling.

    Compared by `wording`, so there can be fewer than `pairs - any_seen` of the audit.

    Returns:
        bool [rows of evaluation].
    """
    seen = {wording(text) for text in [*train["query1"], *train["query2"]]}
    return np.array(
        [
            wording(query1) not in seen and wording(query2) not in seen
            for query1, query2 in zip(evaluation["query1"], evaluation["query2"])
        ],
        dtype=bool,
    )


def _pair_keys(frame: pd.DataFrame) -> list[tuple[str, str]]:
    return [pair_key(*queries) for queries in zip(frame["query1"], frame["query2"])]
