"""Augmentation: what is derived, what never is, and that nothing leaks."""

from pathlib import Path

import jieba
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from src.config import AugmentConfig
from src.data.audit import audit, new_question_rows
from src.data.augment import augment
from src.data.entities import exchange, load_lexicon, mentions, shared_names
from src.data.folds import assign_folds
from src.data.graph import pair_key, wording
from src.data.pairs import read_pairs

ALL = 1000.0  # a ratio that no table can fill: everything derivable is added
TABLE = st.lists(
    st.tuples(*[st.sampled_from("甲乙丙丁戊己庚")] * 2, st.sampled_from([0, 1, 1, -1])),
    min_size=1,
    max_size=12,
)
DISEASES = ["感冒怎么办", "感冒了如何是好", "感冒能喝酒吗", "感冒传染吗", "得了感冒会传染吗"]


def frame(pairs, category: str = "") -> pd.DataFrame:
    rows = [(str(index), category, *pair) for index, pair in enumerate(pairs)]
    table = pd.DataFrame(rows, columns=["id", "category", "query1", "query2", "label"])
    return table.astype({"label": np.int64})


def added(pairs, forbidden=(), closure=0.0, entity=0.0, seed=0) -> pd.DataFrame:
    config = AugmentConfig(closure=closure, entity=entity)
    table = augment(frame(pairs), config, seed, {pair_key(*pair) for pair in forbidden})
    return table[table["source"] != "original"]


def labels(table: pd.DataFrame) -> dict[tuple[str, str], int]:
    keys = [pair_key(*pair) for pair in zip(table["query1"], table["query2"])]
    assert len(set(keys)) == len(keys), "a pair was added twice"
    return dict(zip(keys, table["label"]))


def derive(pairs) -> tuple[set, set, set]:
    """By brute force over all questions: equal pairs, different pairs, questions in conflict."""
    given_labels: dict[tuple[str, str], set[int]] = {}
    for first, second, label in pairs:
        given_labels.setdefault(pair_key(first, second), set()).update({label} & {0, 1})
    questions = sorted({q for pair in given_labels for q in pair})
    same = {(q, q) for q in questions}
    for (first, second), found in given_labels.items():
        if found == {1}:
            same |= {(first, second), (second, first)}
    for middle in questions:
        same |= {(a, b) for a in questions for b in questions if {(a, middle), (middle, b)} <= same}
    different = {
        pair_key(a, b)
        for (first, second), found in given_labels.items()
        if found == {0}
        for x, y in ((first, second), (second, first))
        for a in questions
        for b in questions
        if (a, x) in same and (y, b) in same
    }
    equal = {pair_key(a, b) for a, b in same if a != b}
    broken = {q for q in questions if (q, q) in different}
    return equal, different, broken


@pytest.mark.parametrize(
    ("pairs", "derived"),
    [
        # A=B, A=C => B=C
        ([("A", "B", 1), ("A", "C", 1)], {("B", "C"): 1}),
        # A=B, A≠C => B≠C
        ([("A", "B", 1), ("C", "A", 0)], {("B", "C"): 0}),
        # A≠B, A≠C tells nothing about B and C
        ([("A", "B", 0), ("A", "C", 0)], {}),
        # along a chain, and from one group to another
        (
            [("A", "B", 1), ("B", "C", 1), ("C", "X", 0), ("X", "Y", 1)],
            {("A", "C"): 1, ("A", "X"): 0, ("B", "X"): 0}
            | {("A", "Y"): 0, ("B", "Y"): 0, ("C", "Y"): 0},
        ),
        # the derived pair has the other label: the group contradicts itself, also towards others
        ([("A", "B", 1), ("A", "C", 1), ("B", "C", 0), ("A", "D", 1), ("D", "X", 0)], {}),
        # ... and a sound group next to it still counts
        (
            [("A", "B", 1), ("A", "C", 1), ("B", "C", 0), ("P", "Q", 1), ("P", "R", 1)],
            {("Q", "R"): 1},
        ),
        # one pair with both labels is evidence for neither
        ([("A", "B", 1), ("B", "A", 0), ("A", "C", 1)], {}),
        # unlabelled pairs and pairs of a question with itself are no evidence
        ([("A", "B", -1), ("A", "C", 1), ("C", "C", 1)], {}),
        # a spelling is not a new question
        ([("A?", "B", 1), ("A？", "C", 1), ("Ａ", "B", 1)], {("B", "C"): 1}),
    ],
)
def test_closure_by_hand(pairs, derived):
    assert labels(added(pairs, closure=ALL)) == derived


@settings(deadline=None)  # the machine may be busy
@given(TABLE)
def test_closure_is_complete_and_never_contradicts(pairs):
    equal, different, broken = derive(pairs)
    known = {pair_key(first, second) for first, second, _ in pairs}
    found = labels(added(pairs, closure=ALL))
    sound = {pair for pair in equal | different if not broken & set(pair)} - known
    # Without labels of one class, that class has no quota.
    present = {label for *_, label in pairs}
    assert found == {pair: int(pair in equal) for pair in sound if int(pair in equal) in present}
    assert not any(pair in equal and pair in different for pair in found)
    assert {q for pair in found for q in pair} <= {q for pair in known for q in pair}


@settings(max_examples=40, deadline=None)
@given(TABLE, st.integers(0, 5))
def test_closure_respects_forbidden_and_comes_to_rest(pairs, seed):
    first = added(pairs, closure=ALL)
    pairs_added = list(labels(first))
    half = pairs_added[::2]
    assert labels(added(pairs, forbidden=half, closure=ALL, seed=seed)) == {
        pair: label for pair, label in labels(first).items() if pair not in half
    }
    assert added(pairs, forbidden=pairs_added, closure=ALL).empty
    closed = [*pairs, *zip(first["query1"], first["query2"], first["label"])]
    assert added(closed, closure=ALL).empty


def test_ratio_and_class_balance():
    star = [("A", f"正{i}", 1) for i in range(20)] + [("A", f"负{i}", 0) for i in range(30)]
    found = added(star, closure=0.5)
    assert len(found) == 25
    assert found["label"].sum() == 10


def test_a_scarce_class_is_not_made_up_for():
    found = added([("A", "B", 1), ("A", "C", 1), ("X", "Y", 0), ("X", "Z", 0)], closure=1)
    assert found["label"].tolist() == [1]


def test_original_rows_come_first_and_untouched():
    table = frame([("ＣＴ？", " B", 1), ("ＣＴ？", "C", 1), ("C", "D", -1)], category="感冒")
    result = augment(table, AugmentConfig(closure=1), 0, set())
    assert result["source"].tolist() == ["original"] * 3 + ["closure"]
    pd.testing.assert_frame_equal(result[:3].drop(columns="source"), table)
    assert result.iloc[3][["query1", "query2"]].tolist() in ([" B", "C"], ["C", " B"])
    assert result.iloc[3]["category"] == "感冒"


@pytest.mark.parametrize("config", [AugmentConfig(), AugmentConfig(closure=1, entity=1)])
def test_nothing_to_add_keeps_types(config):
    table = frame([("甲", "乙", 1)])
    result = augment(table, config, 0, set())
    pd.testing.assert_frame_equal(result.drop(columns="source"), table)
    assert result["source"].tolist() == ["original"]


@settings(max_examples=25, deadline=None)
@given(
    st.permutations(
        [
            (a, b, (i + j) % 2)
            for i, a in enumerate(DISEASES)
            for j, b in enumerate(DISEASES[i + 1 :])
        ]
    ),
    st.integers(0, 3),
)
def test_added_pairs_depend_on_the_seed_not_on_the_row_order(pairs, seed):
    def content(pairs):
        table = added(pairs, closure=0.5, entity=1, seed=seed)
        return table[["id", "query1", "query2", "label"]].to_numpy().tolist()

    assert content(pairs) == content(sorted(pairs))


def test_another_seed_adds_other_pairs_and_closure_leaves_entities_alone():
    pairs = [("感冒怎么办", "感冒了如何是好", 1), ("感冒能喝酒吗", "感冒传染吗", 0)]
    assert len({frozenset(labels(added(pairs, entity=2, seed=seed))) for seed in range(9)}) > 1
    both = added(pairs, entity=2, closure=1)
    assert labels(both[both["source"] == "entity"]) == labels(added(pairs, entity=2))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("孩子得了支原体肺炎怎么办", {"diseases": {"支原体肺炎"}}),  # not 肺炎
        ("咯血的原因", {"diseases": {"咳血"}}),
        ("哮喘能吃阿莫西林胶囊吗", {"diseases": {"哮喘"}, "drugs": {"阿莫西林"}}),
        ("出血性肺炎严重吗", {"diseases": {"出血性肺炎"}}),
        ("感冒能吃感冒药吗", {"diseases": {"感冒", "感冒药"}}),
        ("肺炎疫苗打几针", {"diseases": {"肺炎疫苗"}}),
        ("今天吃什么", {}),
    ],
)
def test_names_are_found_as_whole_words(text, found):
    assert mentions(text) == found


def test_exchange_replaces_synonyms_too():
    assert exchange("咳血和咯血一样吗", "diseases", "肺结核") == "肺结核和肺结核一样吗"
    assert shared_names("感冒了能喝酒吗", "得了伤风能喝酒吗") == [("diseases", "感冒")]
    assert shared_names("感冒会变成肺炎吗", "感冒了怎么办") == []
    assert shared_names("感冒了怎么办", "肺炎怎么办") == []


def test_lexicon_is_consistent():
    lexicon = load_lexicon()
    ten = "肺炎 支原体肺炎 支气管炎 上呼吸道感染 肺结核 哮喘 胸膜炎 肺气肿 感冒 咳血".split()
    assert set(ten) <= set(lexicon.kinds["diseases"])
    for name, (kind, written) in lexicon.name_of.items():
        # A name with two entries would be lost here, one that jieba splits could not be found.
        assert mentions(f"请问{name}怎么办") == {kind: {written}}
    written_names = {name for names in lexicon.kinds.values() for name in names}
    assert written_names == {written for _, written in lexicon.name_of.values()}


def test_the_shared_jieba_tokenizer_is_left_alone():
    mentions("感冒")
    assert "疱疹性咽峡炎" not in jieba.dt.user_word_tag_tab
    assert "疱疹性咽峡炎" not in jieba.dt.FREQ


def test_entity_replacement_keeps_the_label_and_makes_hard_negatives():
    pairs = [("感冒怎么办", "感冒了如何是好", 1), ("感冒能喝酒吗", "感冒传染吗", 0)] * 4
    pairs = [(f"{i}岁{a}", f"{i}岁{b}", label) for i, (a, b, label) in enumerate(pairs)]
    found = added(pairs, entity=2)
    assert len(found) == 16 and found["label"].sum() == 8
    source = {wording(q)[:2]: label for q, _, label in pairs}  # age -> label of its pair
    hard = 0
    for query1, query2, label in zip(found["query1"], found["query2"], found["label"]):
        (first,), (second,) = mentions(query1)["diseases"], mentions(query2)["diseases"]
        if first == second:
            assert first != "感冒" and label == source[query1[:2]]
        else:
            assert "感冒" in (first, second) and label == 0 and source[query1[:2]] == 1
            hard += 1
    assert hard == 2  # a quarter of the negatives
    assert {"肺结核", "支气管炎"} <= set().union(
        *found["query1"].map(mentions).map(lambda names: names["diseases"])
    )


def test_entity_replacement_makes_no_known_question():
    pairs = [("感冒怎么办", "感冒了如何是好", 1), ("感冒能喝酒吗", "感冒传染吗", 0)]
    forbidden = [("肺结核怎么办？", "x"), ("支气管炎传染吗", "y")]
    found = added(pairs, forbidden=forbidden, entity=ALL)
    made = {wording(q) for q in [*found["query1"], *found["query2"]]}
    assert not made & {"肺结核怎么办", "支气管炎传染吗"}
    assert "支气管炎怎么办" in made
    # a positive pair may lend one old question to a hard negative; no pair is made of two
    old = {question for *pair, _ in pairs for question in pair}
    assert not (found["query1"].isin(old) & found["query2"].isin(old)).any()


def test_a_pair_made_from_two_sources_is_added_once():
    pairs = [("感冒怎么办", "感冒如何是好", 1), ("哮喘怎么办", "哮喘如何是好", 0)]
    assert labels(added(pairs, entity=ALL))  # refuses a pair that occurs twice


def test_synonyms_that_collapse_make_no_pair_of_a_question_with_itself():
    found = added([("感冒怎么办", "伤风怎么办", 1), ("感冒？", "伤风", 0)], entity=ALL)
    assert (found["query1"].map(wording) != found["query2"].map(wording)).all()


def test_no_leak_on_the_competition_files(competition: Path) -> None:
    files = (competition / "tianchi" / f"{name}.csv" for name in ("train", "dev"))
    train, dev = (read_pairs(path, labelled=True).frame for path in files)
    fold = assign_folds(train, 3, seed=2020)
    for index in range(3):
        part = train[fold != index].reset_index(drop=True)
        validation = train[fold == index]
        held_out = pd.concat([validation, dev])
        forbidden = {pair_key(*pair) for pair in zip(held_out["query1"], held_out["query2"])}
        result = augment(part, AugmentConfig(closure=0.5, entity=0.5), 2020, forbidden)

        assert audit(result, validation).verdict == "no leak: all questions new"
        assert new_question_rows(result, dev).sum() == new_question_rows(part, dev).sum()
        new = result[result["source"] != "original"]
        assert not forbidden & {pair_key(*pair) for pair in zip(new["query1"], new["query2"])}
        assert new["source"].value_counts().to_dict() == dict.fromkeys(
            ("closure", "entity"), round(0.5 * len(part))
        )
        assert abs(new["label"].mean() - part["label"].mean()) < 0.001
        names = new.loc[new["source"] == "entity", "query1"].str.contains("肺结核|支气管炎")
        assert names.mean() > 0.5
