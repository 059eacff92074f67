"""The unlabelled questions that a language model may read."""

from collections.abc import Iterable

import pandas as pd

from ...data.graph import question_key, wording


def collect(frames: Iterable[pd.DataFrame], held_out: Iterable[pd.DataFrame] = ()) -> list[str]:
    """All distinct questions of pair frames, in order of first appearance.

    Args:
        held_out: pair frames whose questions, in any spelling, are not to be read: a score on
            questions that the encoder has read without their labels is not one on new questions.
    """
    banned = {wording(text) for frame in held_out for text in _texts(frame)}
    found = {
        question_key(text): text
        for frame in frames
        for text in _texts(frame)
        if wording(text) not in banned
    }
    return list(found.values())


def _texts(frame: pd.DataFrame) -> list[str]:
    return [text for pair in zip(frame["query1"], frame["query2"], strict=True) for text in pair]
