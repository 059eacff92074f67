"""The unlabelled questions that a language model may read."""

from collections.abc import Iterable, Iterator

import pandas as pd

from ...data.graph import question_key, wording


def collect(frames: Iterable[pd.DataFrame], held_out: Iterable[pd.DataFrame] = ()) -> list[str]:
    """All distinct questions of pair frames, in order of first appearance.

    Args:
        held_out: pair frames whose questions, in any spelling, are not to be read: a score on
            questions that the encoder has read without their labels is not one on new questions.
    """
    banned = {wording(text) for text in _texts(held_out)}
    found = {question_key(text): text for text in _texts(frames) if wording(text) not in banned}
    return list(found.values())


def _texts(frames: Iterable[pd.DataFrame]) -> Iterator[str]:
    for frame in frames:
        yield from frame[["query1", "query2"]].to_numpy().ravel()
