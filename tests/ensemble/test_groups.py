"""Groups decided together: the model, its prior, the choice, and what must not matter."""

from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import product
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from src.config import EnsembleConfig
from src.data.folds import assign_folds
from src.data.pairs import read_pairs
from src.ensemble.choose import choose
from src.ensemble.combine import Decision
from src.ensemble.count_prior import CountPrior
from src.ensemble.cross_fit import cross_fitted_labels
from src.ensemble.group_rule import GroupRule, log_loss, most_probable, weigh
from src.ensemble.groups import MOST, candidate_pairs, group_sizes, groups_by_size
from src.ensemble.predicted import Predicted
from src.ensemble.tune import Search, tune
from src.report.by_group import by_size, rearranged, under_damage

PRIOR = CountPrior({5: [0, 1, 97, 2, 0, 0], 10: [0, 0, 0, 1, 18, 1, 0, 0, 0, 0, 0]})


def table(sizes: list[int], ones: list[int] | None = None) -> pd.DataFrame:
    """Groups of these sizes; the first candidates of a group are labelled 1."""
    ones = ones or [0] * len(sizes)
    rows = [
        (f"问题{number}", f"候选{number}之{row}", int(row < k))
        for number, (size, k) in enumerate(zip(sizes, ones, strict=True))
        for row in range(size)
    ]
    frame = pd.DataFrame(rows, columns=["query1", "query2", "label"])
    return frame.assign(id=[str(row) for row in range(len(frame))], category="")


def annotated(seed: int, groups: int, noise: float = 1.5) -> Predicted:
    """Groups as the annotators made them, two in five alike, and a bi-encoder that errs."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([5, 10], groups, p=[0.85, 0.15]).tolist()
    frame = table(sizes, [2 * size // 5 for size in sizes])
    labels = frame["label"].to_numpy()
    pairs = candidate_pairs(frame)
    one = dict(zip(frame["query2"], labels, strict=True))
    alike = np.array([one[a] * one[b] for a, b in zip(pairs["query1"], pairs["query2"])])
    return Predicted(
        frame,
        {"m": 2.0 * labels - 1 + noise * rng.normal(size=len(labels))},
        {"m": 2.0 * alike - 1 + noise * rng.normal(size=len(alike))},
    )


# The model.


@given(
    st.lists(st.floats(-5, 5), min_size=4, max_size=4),
    st.lists(st.floats(-5, 5), min_size=6, max_size=6),
    st.floats(0, 2),
)
def test_the_model_is_the_one_that_is_written_down(logits, alike, kinship) -> None:
    """Its probabilities, by hand over all labellings, sum to one; the likeliest is decided."""
    frame, share = table([4]), PRIOR.share(4)
    frame = frame.iloc[np.argsort(frame["query2"])]
    parameters = np.array([0.7, -0.2, kinship])
    by_hand = {}
    for labels in product((0, 1), repeat=4):
        pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
        kin = sum(c for (i, j), c in zip(pairs, alike, strict=True) if labels[i] and labels[j])
        evidence = sum(0.7 * z - 0.2 for z, label in zip(logits, labels, strict=True) if label)
        by_hand[labels] = (
            np.exp(evidence + kinship * kin) * share[sum(labels)] / comb(4, sum(labels))
        )
    total = sum(by_hand.values())
    groups = list(weigh(frame, np.array(logits), np.array(alike), PRIOR))
    for labels, weight in by_hand.items():
        loss = log_loss(groups, parameters, np.array(labels))
        if share[sum(labels)] >= 1e-4:
            assert np.exp(-loss) == pytest.approx(weight / total, rel=1e-3, abs=1e-4)
    decided = tuple(most_probable(groups, parameters, np.zeros(4, int)))
    assert by_hand[decided] == pytest.approx(max(by_hand.values()), rel=1e-9)


@given(st.integers(1, 30))
def test_a_prior_is_one_for_every_size(size: int) -> None:
    share = PRIOR.share(size)
    assert len(share) == size + 1 and share.sum() == pytest.approx(1) and (share > 0).all()
    assert abs(share @ np.arange(size + 1) / size - 0.4) < 0.03, "two in five, whatever the size"


def test_a_size_that_train_knows_keeps_its_counts() -> None:
    assert PRIOR.share(5)[2] == pytest.approx(0.97, abs=0.01)
    assert PRIOR.share(10)[4] == pytest.approx(0.9, abs=0.02)
    assert PRIOR.share(15).argmax() == 6


def test_labelled_groups_are_counted() -> None:
    prior = CountPrior.of(table([5, 5, 5, 3, 1], [2, 2, 1, 1, 1]))
    assert prior.counts == {5: [0, 1, 2, 0, 0, 0], 3: [0, 1, 0, 0]}
    assert prior.unit == 5


def test_the_count_is_known_and_only_the_order_is_sought() -> None:
    """All logits say 0, and still two of five are decided alike."""
    frame = table([5])
    rule = GroupRule(prior=PRIOR)
    decided = rule.decide(frame, np.array([-4.0, -1.0, -3.0, -2.0, -5.0]), None, np.zeros(5, int))
    assert decided.tolist() == [0, 1, 0, 1, 0]


def test_candidates_that_are_alike_go_together() -> None:
    frame, logits = table([5]), np.array([1.0, 0.5, 0.4, -3.0, -3.0])
    alike = [
        1.0 if {a[-1], b[-1]} == {"0", "2"} else -1.0
        for a, b in zip(
            candidate_pairs(frame)["query1"], candidate_pairs(frame)["query2"], strict=True
        )
    ]
    for kinship, expected in ((0.0, [1, 1, 0, 0, 0]), (1.0, [1, 0, 1, 0, 0])):
        rule = GroupRule(kinship=kinship, prior=PRIOR)
        decided = rule.decide(frame, logits, np.array(alike), np.zeros(5, int))
        assert decided.tolist() == expected


def test_a_pair_alone_and_a_crowd_are_decided_pair_by_pair() -> None:
    frame = table([1, MOST + 1])
    labels = np.arange(MOST + 2) % 2
    assert (
        GroupRule(prior=PRIOR).decide(frame, -labels * 9.0, None, labels).tolist()
        == labels.tolist()
    )
    assert len(candidate_pairs(frame)) == 0


# What must not matter, and what must.


@given(st.integers(0, 1000))
def test_the_order_of_the_rows_is_never_read(seed: int) -> None:
    found = annotated(seed, 12)
    decision = Decision({"m": 1.0}, 0.0, GroupRule(0.8, 0.1, 0.3, PRIOR), ("m",))
    order = np.random.default_rng(seed).permutation(len(found.frame))
    shuffled = rearranged(found, order, np.zeros(len(order), bool))
    assert (decision.decide_groups(shuffled) == decision.decide_groups(found)[order]).all()


def test_candidates_that_look_the_same_are_told_apart_by_their_ids() -> None:
    frame = table([5])
    rule = GroupRule(prior=PRIOR)
    first = rule.decide(frame, np.zeros(5), None, np.zeros(5, int))
    turned = frame.iloc[::-1].reset_index(drop=True)
    assert rule.decide(turned, np.zeros(5), None, np.zeros(5, int)).tolist() == first[::-1].tolist()


@pytest.mark.parametrize("seed", range(3))
def test_a_group_lies_in_one_fold(sample: Path, seed: int) -> None:
    frame = read_pairs(sample / "train.csv", labelled=True).frame
    folds = assign_folds(frame, 3, seed)
    for rows in groups_by_size(frame):
        assert (folds[rows] == folds[rows][:, :1]).all()


def test_a_folds_groups_are_decided_without_its_own_labels() -> None:
    found = annotated(3, 60)
    folds = pd.factorize(found.frame["query1"])[0] % 3
    tuned = partial(tune, Search(10, 1, "sqlite:///:memory:", False, "run"))
    before = cross_fitted_labels(found, folds, tuned)[1]
    labels = found.frame["label"].where(folds != 1, 1 - found.frame["label"])
    after = cross_fitted_labels(
        replace(found, frame=found.frame.assign(label=labels)), folds, tuned
    )[1]
    assert (before[folds == 1] == after[folds == 1]).all()
    assert (before[folds != 1] != after[folds != 1]).any(), "the other folds do see these labels"


def test_tuning_finds_what_a_group_gives_away() -> None:
    search = Search(40, 0, "sqlite:///:memory:", False, "run")
    decision = tune(search, annotated(0, 150), "all")
    other = annotated(1, 150)
    labels = other.frame["label"].to_numpy()
    pairs = np.mean(decision.decide(other.logits) == labels)
    groups = np.mean(decision.decide_groups(other) == labels)
    without = Decision(decision.weights, decision.threshold, decision.groups)
    alone = np.mean(without.decide_groups(Predicted(other.frame, other.logits, {})) == labels)
    assert decision.groups.kinship > 0
    assert groups > alone + 0.02 > pairs + 0.04


def test_damage_is_what_it_is_called() -> None:
    found = annotated(2, 200, noise=1.0)
    decision = Decision({"m": 1.0}, 0.0, GroupRule(1.0, 0.0, 0.5, PRIOR), ("m",))
    as_it_is, shuffled, cut, moved = under_damage(found, decision, np.ones(len(found.frame), bool))
    assert as_it_is["in_groups"] == shuffled["in_groups"] > as_it_is["pair_by_pair"]
    assert as_it_is["pair_by_pair"] == shuffled["pair_by_pair"] == moved["pair_by_pair"]
    assert moved["in_groups"] < as_it_is["in_groups"]
    assert cut["damage"].startswith("one group in ten")


def test_a_crowd_may_be_cut_to_a_group() -> None:
    frame = table([MOST + 5, 5])
    crowd = Predicted(frame, {"m": np.zeros(MOST + 10)}, {"m": np.arange(10.0)})
    rows = np.array([*range(3), *range(MOST + 5, MOST + 10)])
    left = rearranged(crowd, rows, np.zeros(len(frame), bool))
    assert left.alike["m"].tolist() == [0.0, 0.0, 0.0, *range(10)]


def test_scores_by_size() -> None:
    frame = table([5, 5, 1], [2, 2, 1])
    labels = frame["label"].to_numpy()
    decided = np.array([labels, labels])
    decided[0, 0], decided[1, :5] = 0, [1, 0, 1, 0, 0]  # one pair wrong; two, but the count right
    five, alone = by_size(frame, decided)
    assert (five.size, five.groups, five.pairs) == ("5", 2, 10)
    assert (five.pair_by_pair, five.in_groups, five.count_right) == (0.9, 0.8, 1.0)
    assert (alone.size, alone.pairs, alone.in_groups) == ("other", 1, 1.0)


# The choice.

TRAIN = table([5] * 20, [2] * 20)
BETTER = np.array([1 - TRAIN["label"], TRAIN["label"]])  # in groups everything is right


@pytest.mark.parametrize(
    ("setting", "cross_fitted", "test", "way"),
    [
        ("auto", BETTER, table([5]), "groups"),  # such as the organisers' example
        ("auto", BETTER, table([5, 5, 4, 3, 1]), "groups"),
        ("auto", BETTER, table([1] * 30), "pairs"),
        ("auto", BETTER, table([8, 7, 9]), "pairs"),
        ("auto", BETTER[::-1], table([5]), "pairs"),
        ("groups", BETTER[::-1], table([1]), "groups"),
        ("pairs", BETTER, table([5]), "pairs"),
    ],
)
def test_the_choice(setting, cross_fitted, test, way) -> None:
    choice = choose(EnsembleConfig(decide=setting), TRAIN, cross_fitted, test)
    assert choice.way == way and choice.why


def test_groups_are_found_by_the_question_in_any_spelling() -> None:
    frame = table([3])
    frame["query1"] = ["感冒ＣＴ？", " 感冒CT？", "感冒CT?"]  # the mark tells questions apart
    assert Counter(group_sizes(frame).tolist()) == {2: 2, 1: 1}
