"""The question graph: identity of questions and pairs, and components."""

from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from src.data.graph import components, pair_key, pair_keys, question_key, wording
from src.data.pairs import read_pairs

QUESTIONS = st.sampled_from(["甲?", "甲？", "乙", "丙", "丁", "戊", "ＣＴ贵吗", "CT贵吗"])
PAIRS = st.lists(st.tuples(QUESTIONS, QUESTIONS, st.sampled_from([0, 1, -1])), max_size=12)


def frame(pairs) -> pd.DataFrame:
    rows = [(str(index), "", *pair) for index, pair in enumerate(pairs)]
    table = pd.DataFrame(rows, columns=["id", "category", "query1", "query2", "label"])
    return table.astype({"label": np.int64})


def test_key_folds_width_but_keeps_punctuation():
    assert question_key(" ＣＴ １次多少钱？\u3000") == "CT 1次多少钱？"
    assert question_key("怎么办?") != question_key("怎么办？")
    assert wording("CT 贵吗?") == wording("ｃｔ贵吗？") == "ct贵吗"
    assert wording("？？") != wording("!")  # nothing to compare but the marks themselves
    assert pair_key("乙", "甲") == pair_key("甲", "乙")
    assert pair_key("甲？", "乙", wording) == ("乙", "甲")
    assert pair_keys(frame([("丁", "丙!", 1)]), wording) == [("丁", "丙")]


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


def test_facts_of_the_competition_files(competition: Path) -> None:
    files = (competition / "tianchi" / f"{name}.csv" for name in ("train", "dev"))
    train, dev = (read_pairs(path, labelled=True).frame for path in files)
    assert sum(train["query1"].map(question_key) == train["query2"].map(question_key)) == 4

    both = pd.concat([train, dev])
    component = components(train, dev)
    assert len(component) == len(both)
    assert len(set(component)) == 1355
    members: dict[int, set[str]] = {}
    for owner, query1, query2 in zip(component, both["query1"], both["query2"]):
        members.setdefault(owner, set()).update({question_key(query1), question_key(query2)})
    assert max(map(len, members.values())) == 517
