"""The leak audit: which evaluation pairs and questions has training seen?"""

from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from .graph import components, pair_keys, wording


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

    def share(self, count: int) -> float:
        """`count` as a share of the evaluation pairs."""
        return count / self.pairs if self.pairs else 0.0

    @property
    def verdict(self) -> str:
        """One short line that stands beside every score measured on the evaluation file."""
        if self.exact_pairs or self.both_seen:
            return (
                f"leaky: {self.exact_pairs} of {self.pairs} pairs "
                f"({_percent(self.share(self.exact_pairs))}) stand in training, "
                f"both questions seen in {100 * self.share(self.both_seen):.2f} %"
            )
        if self.any_seen:
            return (
                "leaky: no pair stands in training, but one of its questions does in "
                f"{self.any_seen} of {self.pairs} ({_percent(self.share(self.any_seen))})"
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
            "exact_share": self.share(self.exact_pairs),
            "both_share": self.share(self.both_seen),
            "any_share": self.share(self.any_seen),
            "new_share": self.share(self.new_pairs),
            "verdict": self.verdict,
        }


def _percent(share: float) -> str:
    """One decimal, two below one per cent: a small leak must not read as none."""
    return f"{100 * share:.1f} %" if share >= 0.01 else f"{100 * share:.2f} %"


def audit(train: pd.DataFrame, evaluation: pd.DataFrame) -> Audit:
    """Compare an evaluation file with the training file, both as pair frames.

    The order of rows and of the two questions in a pair makes no difference.
    """
    known, pairs = pair_keys(train), pair_keys(evaluation)
    seen, questions = set(chain.from_iterable(known)), set(chain.from_iterable(pairs))
    seen_in_pair = [(first in seen) + (second in seen) for first, second in pairs]
    known_pairs, seen_wordings = set(known), {wording(key) for key in seen}
    component = components(train, evaluation)
    labels = set(zip(known + pairs, [*train["label"], *evaluation["label"]]))
    labelled = [pair for pair, label in labels if label >= 0]  # -1 contradicts nothing
    return Audit(
        pairs=len(pairs),
        exact_pairs=sum(pair in known_pairs for pair in pairs),
        both_seen=seen_in_pair.count(2),
        any_seen=len(pairs) - seen_in_pair.count(0),
        new_pairs=int(new_question_rows(train, evaluation).sum()),
        questions=len(questions),
        shared_questions=len(questions & seen),
        respelled_questions=sum(wording(key) in seen_wordings for key in questions - seen),
        crossing_components=len({*component[: len(train)]} & {*component[len(train) :]}),
        contradictory_labels=len(labelled) - len(set(labelled)),
    )


def both_labels(train: pd.DataFrame) -> list[dict[str, str]]:
    """The pairs of a labelled pair frame that stand there as the same and as different.

    Order, spelling and white space make no difference.

    Returns:
        One record a pair, in the order of the file: query1 and query2 of its first row, and the ids
        of its rows "same" (label 1) and "different" (label 0).
    """
    keys = pd.Series(pair_keys(train, wording), index=train.index)
    kinds = train.groupby(keys, sort=False)["label"].transform("nunique")
    found = []
    for _, rows in train[kinds > 1].groupby(keys[kinds > 1], sort=False):
        ids = {label: ", ".join(rows["id"][rows["label"] == label]) for label in (0, 1)}
        queries = {name: rows[name].iloc[0] for name in ("query1", "query2")}
        found.append({**queries, "same": ids[1], "different": ids[0]})
    return found


def new_question_rows(train: pd.DataFrame, evaluation: pd.DataFrame) -> np.ndarray:
    """Which evaluation pairs have two questions that training does not know in any spelling.

    Compared by `wording`, so there can be fewer than `pairs - any_seen` of the audit.

    Returns:
        bool [rows of evaluation].
    """
    seen = set(chain.from_iterable(pair_keys(train, wording)))
    return np.array([seen.isdisjoint(pair) for pair in pair_keys(evaluation, wording)], bool)
