"""The leak audit: what an evaluation file shares with a training file."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from src.data.audit import audit, both_labels, new_question_rows
from src.data.pairs import read_pairs

QUESTIONS = st.sampled_from(["甲?", "甲？", "乙", "丙", "丁", "戊", "ＣＴ贵吗", "CT贵吗"])
PAIRS = st.lists(st.tuples(QUESTIONS, QUESTIONS, st.sampled_from([0, 1, -1])), max_size=12)


def frame(pairs) -> pd.DataFrame:
    rows = [(str(index), "", *pair) for index, pair in enumerate(pairs)]
    table = pd.DataFrame(rows, columns=["id", "category", "query1", "query2", "label"])
    return table.astype({"label": np.int64})


def read(competition: Path, name: str) -> pd.DataFrame:
    return read_pairs(competition / name, labelled=True).frame


def swapped(table: pd.DataFrame) -> pd.DataFrame:
    return table.rename(columns={"query1": "query2", "query2": "query1"})


def test_audit_counts_a_small_case():
    train = frame([("甲", "乙", 1), ("丙", "丁", 0), ("ＣＴ贵吗", "戊", 1), ("甲", "乙", 1)])
    evaluation = frame(
        [
            ("乙", "甲", 0),  # in training the other way round, and with the other label
            ("甲", "CT贵吗", 1),  # both seen, the pair is not
            ("丁", "新", 0),  # one seen
            ("丁？", "新", 0),  # seen but for the mark
            ("己", "庚", 1),  # all new
        ]
    )
    found = audit(train, evaluation)
    assert (found.pairs, found.exact_pairs, found.both_seen, found.any_seen) == (5, 1, 2, 3)
    assert (found.questions, found.shared_questions, found.respelled_questions) == (8, 4, 1)
    assert (found.crossing_components, found.contradictory_labels) == (2, 1)
    assert [found.as_dict()[f"{name}_share"] for name in ("exact", "both", "any", "new")] == [
        0.2,
        0.4,
        0.6,
        0.2,
    ]
    assert new_question_rows(train, evaluation).tolist() == [False] * 4 + [True]
    assert found.new_pairs == 1
    assert json.loads(json.dumps(found.as_dict()))["verdict"] == found.verdict


def test_pairs_with_both_labels_are_found_in_every_spelling():
    pairs = [("甲", "乙", 1), ("丙", "ＣＴ 贵", 0), ("乙", "甲", 0), ("CT贵？", "丙", 1)]
    others = [("甲", "乙", 1), ("甲", "丙", 0), ("甲", "丙", 0)]
    assert both_labels(frame(pairs + others)) == [
        {"query1": "甲", "query2": "乙", "same": "0, 4", "different": "2"},
        {"query1": "丙", "query2": "ＣＴ 贵", "same": "3", "different": "1"},
    ]
    assert both_labels(frame(others)) == []


@given(PAIRS, st.randoms(use_true_random=False))
def test_neither_order_nor_direction_changes_which_pairs_have_both_labels(pairs, random):
    labelled = [pair for pair in pairs if pair[2] >= 0]
    other = [(b, a, label) if random.random() < 0.5 else (a, b, label) for a, b, label in labelled]
    random.shuffle(other)
    assert len(both_labels(frame(labelled))) == len(both_labels(frame(other)))


@pytest.mark.parametrize(
    ("evaluation", "verdict"),
    [
        ([("丙", "丁", 1)], "no leak: all questions new"),
        ([("甲", "丁", 1)], "leaky: no pair stands in training, but one of its questions does"),
        ([("甲!", "丁", 1)], "leaky: 1 of 2 questions differ from a training question only in"),
        ([("乙", "甲", 1)], "leaky: 1 of 1 pairs (100.0 %) stand in training"),
        ([], "no leak: all questions new"),
    ],
)
def test_verdict(evaluation, verdict):
    assert audit(frame([("甲", "乙", 1)]), frame(evaluation)).verdict.startswith(verdict)


def test_unlabelled_rows_contradict_nothing():
    labelled, unlabelled = frame([("甲", "乙", 1)]), frame([("甲", "乙", -1)])
    assert audit(labelled, unlabelled).contradictory_labels == 0


@settings(deadline=None)  # the machine may be busy
@given(PAIRS, PAIRS)
def test_audit_ignores_the_order_of_a_pair_and_of_rows(train, evaluation):
    train, evaluation = frame(train), frame(evaluation)
    found = audit(train, evaluation)
    assert audit(swapped(train), evaluation) == found
    assert audit(train, swapped(evaluation)) == found
    assert audit(train[::-1], evaluation[::-1]) == found
    assert found.exact_pairs <= found.both_seen <= found.any_seen <= found.pairs - found.new_pairs


def test_the_articles_split_leaks(competition: Path) -> None:
    parts = (read(competition, f"article-split/my_{name}.csv") for name in ("train", "dev"))
    found = audit(*parts)
    assert (found.pairs, found.exact_pairs, found.both_seen) == (800, 101, 566)
    assert found.verdict == (
        "leaky: 101 of 800 pairs (12.6 %) stand in training, both questions seen in 70.75 %"
    )


def test_facts_of_the_competition_files(competition: Path) -> None:
    train, dev = read(competition, "tianchi/train.csv"), read(competition, "tianchi/dev.csv")
    found = audit(train, dev)
    assert (found.pairs, found.questions, found.shared_questions) == (2002, 2316, 182)
    assert (found.exact_pairs, found.contradictory_labels) == (1, 1)
