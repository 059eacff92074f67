"""The question graph: identity of questions, components, and the leak audit."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from src.data.graph import audit, components, new_question_rows, pair_key, question_key, wording

QUESTIONS = st.sampled_from(["甲?", "甲？", "乙", "丙", "丁", "戊", "ＣＴ贵吗", "CT贵吗"])
PAIRS = st.lists(st.tuples(QUESTIONS, QUESTIONS, st.sampled_from([0, 1, -1])), max_size=12)


def frame(pairs) -> pd.DataFrame:
    rows = [(str(index), "", *pair) for index, pair in enumerate(pairs)]
    table = pd.DataFrame(rows, columns=["id", "category", "query1", "query2", "label"])
    return table.astype({"label": np.int64})


def read(*parts: str) -> pd.DataFrame:
    if "TIANCHI_DATA" not in os.environ:
        pytest.skip("TIANCHI_DATA is not set: the competition files are not here")
    path = Path(os.environ["TIANCHI_DATA"]).joinpath(*parts)
    return pd.read_csv(path, dtype=str, keep_default_na=False).astype({"label": np.int64})


def swapped(table: pd.DataFrame) -> pd.DataFrame:
    return table.rename(columns={"query1": "query2", "query2": "query1"})


def test_key_folds_width_but_keeps_punctuation():
    assert question_key(" ＣＴ １次多少钱？\u3000") == "CT 1次多少钱？"
    assert question_key("怎么办?") != question_key("怎么办？")
    assert wording("CT 贵吗?") == wording("ｃｔ贵吗？") == "ct贵吗"
    assert wording("？？") != wording("!")  # nothing to compare but the marks themselves
    assert pair_key("乙", "甲") == pair_key("甲", "乙")


@settings(deadline=None)  # the machine may be busy
@given(st.text(), st.text())
def test_key_is_stable_and_finer_than_wording(first, second):
    assert question_key(question_key(first)) == question_key(first)
    assert wording(question_key(first)) == wording(first)
    assert pair_key(first, second) == pair_key(second, first)


def test_components_are_numbered_by_first_appearance_over_all_frames():
    first = frame([("甲", "乙", 1), ("丙", "丁", 0), ("戊", "戊", 1)])
    second = frame([("己", "庚", 0), ("丁", "戊", 1)])
    assert components(first).tolist() == [0, 1, 2]
    assert components(first, second).tolist() == [0, 1, 1, 2, 1]
    assert components(frame([])).tolist() == []
    respelled = frame([("甲?", "乙", 1), ("甲？", "丙", 1)])
    assert components(respelled).tolist() == [0, 1]
    assert components(respelled, key=wording).tolist() == [0, 0]


@settings(deadline=None)  # the machine may be busy
@given(PAIRS)
def test_components_agree_with_merging_by_hand(pairs):
    sets: list[set[str]] = []
    for query1, query2, _ in pairs:
        touched = [s for s in sets if question_key(query1) in s or question_key(query2) in s]
        sets = [s for s in sets if s not in touched]
        sets.append({question_key(query1), question_key(query2)}.union(*touched))
    names = [next(i for i, s in enumerate(sets) if question_key(q) in s) for q, _, _ in pairs]
    expected = list(dict.fromkeys(names))
    assert components(frame(pairs)).tolist() == [expected.index(name) for name in names]


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
    assert (found.exact_share, found.both_share, found.any_share) == (0.2, 0.4, 0.6)
    assert new_question_rows(train, evaluation).tolist() == [False] * 4 + [True]
    assert found.new_pairs == 1
    assert json.loads(json.dumps(found.as_dict()))["verdict"] == found.verdict


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


def test_the_articles_split_leaks():
    found = audit(read("article-split", "my_train.csv"), read("article-split", "my_dev.csv"))
    assert (found.pairs, found.exact_pairs, found.both_seen) == (800, 101, 566)
    assert found.verdict == (
        "leaky: 101 of 800 pairs (12.6 %) stand in training, both questions seen in 70.75 %"
    )


def test_facts_of_the_competition_files():
    train, dev = read("tianchi", "train.csv"), read("tianchi", "dev.csv")
    found = audit(train, dev)
    assert (found.pairs, found.questions, found.shared_questions) == (2002, 2316, 182)
    assert (found.exact_pairs, found.contradictory_labels) == (1, 1)
    assert sum(train["query1"].map(question_key) == train["query2"].map(question_key)) == 4

    both = pd.concat([train, dev])
    component = components(train, dev)
    assert len(component) == len(both)
    assert len(set(component)) == 1355
    members: dict[int, set[str]] = {}
    for owner, query1, query2 in zip(component, both["query1"], both["query2"]):
        members.setdefault(owner, set()).update({question_key(query1), question_key(query2)})
    assert max(map(len, members.values())) == 517
