"""Folds: components stay whole, strata are spread, too few components are refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from src.data.audit import audit
from src.data.folds import assign_folds
from src.data.graph import components, wording
from src.data.pairs import read_pairs
from src.errors import UserError

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["", "感冒", "肺炎"]),
        st.integers(0, 30).map("问题{}".format),
        st.integers(0, 30).map("问题{}？".format),  # the same questions, spelled otherwise
        st.sampled_from([0, 1]),
    ),
    min_size=1,
    max_size=40,
)


def frame(rows) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["category", "query1", "query2", "label"])
    table.insert(0, "id", [str(index) for index in range(len(table))])
    return table


def disjoint(rows) -> pd.DataFrame:
    """A frame of (category, label) rows in which no question occurs twice."""
    return frame([(c, f"问{i}", f"答{i}", label) for i, (c, label) in enumerate(rows)])


@settings(deadline=None)  # the machine may be busy
@given(ROWS, st.integers(2, 4), st.integers(0, 3))
def test_no_component_is_split_and_no_fold_is_empty(rows, folds, seed):
    table = frame(rows)
    groups = components(table, key=wording)
    assume(len(set(groups)) >= folds)
    fold = assign_folds(table, folds, seed)
    assert set(fold) == set(range(folds))
    assert all(len(set(fold[groups == group])) == 1 for group in set(groups))
    assert fold.tolist() == assign_folds(table, folds, seed).tolist()
    for index in range(folds):
        assert audit(table[fold != index], table[fold == index]).verdict.startswith("no leak")


def test_label_and_category_are_spread():
    table = disjoint([(c, y) for c in ("感冒", "肺炎") for y in (0, 0, 1) for _ in range(4)])
    fold = assign_folds(table, 4, seed=0)
    counts = table.groupby([fold, "category", "label"]).size()
    for index in range(4):
        assert counts[index].to_dict() == {
            ("感冒", 0): 2,
            ("感冒", 1): 1,
            ("肺炎", 0): 2,
            ("肺炎", 1): 1,
        }


@pytest.mark.parametrize("category", [lambda i: "", lambda i: f"罕见{i}"])
def test_label_alone_is_spread_where_the_category_is_absent_or_rare(category):
    table = disjoint([(category(i), i % 2) for i in range(12)])
    fold = assign_folds(table, 3, seed=0)
    assert table.groupby(fold)["label"].agg(["sum", "size"]).to_numpy().tolist() == [[2, 4]] * 3


def test_tiny_tables_can_be_split(recwarn):
    assert sorted(assign_folds(disjoint([("", 0), ("", 1)]), 2, seed=0)) == [0, 1]
    assert not recwarn.list


def test_another_seed_gives_other_folds():
    table = disjoint([("", i % 2) for i in range(40)])
    assert (assign_folds(table, 4, seed=0) != assign_folds(table, 4, seed=1)).any()


def test_too_few_components_are_refused():
    chain = frame([("", "甲", "乙", 1), ("", "乙", "丙", 0), ("", "丁", "戊", 1)])
    with pytest.raises(UserError, match=r"2 group.*3 folds.*split\.folds=2"):
        assign_folds(chain, 3, seed=0)
    with pytest.raises(UserError, match=r"1 group.*Collect more questions"):
        assign_folds(chain[:2], 2, seed=0)


def test_competition_files_split_evenly(competition: Path) -> None:
    train = read_pairs(competition / "tianchi/train.csv", labelled=True).frame
    for folds in (3, 5):
        fold = assign_folds(train, folds, seed=2020)
        sizes = np.bincount(fold)
        assert sizes.max() < 1.2 * len(train) / folds
        share = train["label"].groupby(fold).mean()
        assert (share - train["label"].mean()).abs().max() < 0.01
        for index in range(folds):
            assert audit(train[fold != index], train[fold == index]).verdict.startswith("no leak")
