"""The studies: their parts, statistics and files, and each of them end to end on a tiny encoder."""

import csv
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from src.config import MemberConfig, TrainingConfig, load_config
from src.data.audit import audit
from src.data.graph import wording
from src.data.pairs import read_pairs, write_pairs
from src.errors import UserError
from src.files import read_json
from src.lab.studies.catalogue import load_study, studies
from src.lab.studies.on_adversarial import edited
from src.lab.studies.on_article import keep_leak, redivide
from src.lab.studies.on_augmentation import is_uncertain
from src.lab.studies.on_backbone import read_questions
from src.lab.studies.robustness.attack import attacked_logits
from src.lab.studies.robustness.edits import EDITS
from src.lab.studies.run_study import run_study
from src.lab.studies.small_batches import small_batch_member
from src.lab.studies.tables.publish import FILES
from src.lab.studies.tables.statistics import (
    apart,
    difference,
    false_discovery,
    hits,
    score,
    sign_flip_test,
)
from src.lab.studies.trials.arm import Trial, Workplace
from src.lab.studies.trials.budget import EVERYTHING, Budget
from src.lab.studies.trials.fitted import Fitted, train_member, tuned_margin
from src.lab.studies.trials.split_parts import hold_out, sample_groups
from src.lab.studies.trials.standard import base_member, official_column
from src.models.registry import build_model


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, sample: Path) -> Path:
    """A data directory with all that a study may look for, cut from the sample."""
    root = tmp_path_factory.mktemp("studied")
    train = read_pairs(sample / "train.csv", labelled=True).frame
    dev = read_pairs(sample / "dev.csv", labelled=True).frame
    write_pairs(train.iloc[:200], root / "data" / "train.csv")
    write_pairs(dev.iloc[:40], root / "data" / "dev.csv")
    write_pairs(train.iloc[200:260], root / "external" / "chip2019.csv")
    write_pairs(train.iloc[:160], root / "article-split" / "my_train.csv")
    leaky = pd.concat([train.iloc[150:160], dev.iloc[40:60]], ignore_index=True)
    write_pairs(leaky.assign(id=leaky.index.astype(str)), root / "article-split" / "my_dev.csv")
    return root / "data"


def config(data: Path, folder: Path, pretrained: Path):
    overrides = [
        f"data.dir={data}",
        f"paths.work={folder / 'work'}",
        f"paths.submissions={folder / 'submissions'}",
        f"paths.pretrained={pretrained}",
    ]
    return load_config("tiny", overrides)


@pytest.mark.parametrize("name", list(studies()))
def test_every_study_runs_and_delivers(
    name: str,
    data: Path,
    tmp_path: Path,
    pretrained: Path,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("src.lab.studies.on_backbone.WIDTH", 48)
    monkeypatch.setattr("src.lab.studies.on_backbone.LAYERS", 2)
    folder = run_study(name, config(data, tmp_path, pretrained), quick=True)
    assert folder == tmp_path / "submissions" / "study" / f"{name}-tiny-quick"
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    content = read_json(folder / "results.json")
    assert str(tmp_path) not in (folder / "results.json").read_text(encoding="utf-8")
    rows = content["rows"]
    assert {row["arm"] for row in rows} == set(content["arms"])
    for row in rows:
        assert row["low"] <= row["accuracy"] <= row["high"]
        assert row["audit"]
        assert (row["reference"] == "") == ("p_value" not in row)
    with open(folder / "results.csv", encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file))) == len(rows)
    with open(folder / "differences.csv", encoding="utf-8", newline="") as file:
        found = {(r["column"], r["score"], r["arm"], r["other"]): r for r in csv.DictReader(file)}
    compared = 0
    for row in rows:
        reference = load_study(name).reference_score or row["score"]
        if row["reference"] in ("", row["arm"]) or row["score"] != reference:
            continue  # of two scores of one arm there is no row in differences.csv
        same = found.get((row["column"], row["score"], row["arm"], row["reference"]))
        turned = found.get((row["column"], row["score"], row["reference"], row["arm"]))
        assert (same is None) != (turned is None)  # every two arms once
        difference = float(same["difference"]) if same else -float(turned["difference"])
        assert difference == pytest.approx(row["difference"])
        compared += 1
    assert compared
    if name in ("article", "leak"):
        verdicts = {row["column"]: row["audit"] for row in rows}
        assert verdicts["article's split"].startswith("leaky: ")
        assert verdicts["same pairs, no leak"] == "no leak: all questions new"
        assert [gap["arm"] for gap in content["gaps"]] == list(content["arms"])
    # The same command again finds every trial made, and says the same.
    capsys.readouterr()
    run_study(name, config(data, tmp_path, pretrained), quick=True)
    assert "──" not in capsys.readouterr().err
    assert read_json(folder / "results.json") == content


def test_a_study_that_does_not_exist(data: Path, tmp_path: Path, pretrained: Path):
    with pytest.raises(UserError, match="There is no study 'colour'. Choose one of: adversarial"):
        run_study("colour", config(data, tmp_path, pretrained), quick=True)


def test_a_profile_without_a_pair_reader(data: Path, tmp_path: Path, pretrained: Path):
    fast = config(data, tmp_path, pretrained).model_copy(
        update={"members": load_config("fast").members}
    )
    with pytest.raises(UserError, match="has no cross-encoder"):
        run_study("pooling", fast, quick=True)


def test_parts_share_no_question(sample: Path):
    train = read_pairs(sample / "train.csv", labelled=True).frame
    budget = Budget(pairs=100, evaluation=60, epochs=1)
    one, other = (hold_out(train, budget, seed) for seed in (1, 2))
    pd.testing.assert_frame_equal(one.evaluation, other.evaluation)
    assert not one.training.equals(other.training)
    for parts in (one, other):
        for a, b in (
            ("training", "evaluation"),
            ("training", "validation"),
            ("validation", "evaluation"),
        ):
            assert audit(getattr(parts, a), getattr(parts, b)).verdict.startswith("no leak")
        assert len(parts.training) <= 100 and len(parts.evaluation) <= 60


def test_groups_are_drawn_whole(sample: Path):
    train = read_pairs(sample / "train.csv", labelled=True).frame
    drawn = sample_groups(train, 50, seed=3)
    sizes = train.groupby("query1").size()
    assert 0 < len(drawn) <= 50
    found = drawn.groupby("query1").size()
    assert (found == sizes.reindex(found.index)).all()
    assert sample_groups(train, None, seed=3).equals(train)


def test_the_leak_survives_sampling(competition: Path):
    """A sample of the article's split leaks as the whole does; divided anew it does not leak."""
    folder = competition / "article-split"
    train, dev = (
        read_pairs(folder / name, labelled=True).frame for name in ("my_train.csv", "my_dev.csv")
    )
    budget = Budget(pairs=2600, evaluation=400, epochs=1)
    parts = keep_leak(train, dev, budget, seed=1)
    whole, sampled = audit(train, parts.evaluation), audit(parts.training, parts.evaluation)
    assert (sampled.exact_pairs, sampled.both_seen, sampled.any_seen) == (
        whole.exact_pairs,
        whole.both_seen,
        whole.any_seen,
    )
    assert whole.share(whole.exact_pairs) > 0.08 and len(parts.validation) > 50
    clean = redivide(train, dev, budget, seed=1)
    assert audit(clean.training, clean.evaluation).verdict == "no leak: all questions new"
    assert abs(len(clean.evaluation) - len(parts.evaluation)) < 40


def test_score_is_the_mean_over_seeds():
    labels, groups = np.array([1, 0, 1, 0]), np.array([0, 0, 1, 1])
    scores = np.array([[1.0, -1, 1, 1], [1, 1, 1, 1]])  # right in 3 and in 2 of 4
    found = score(labels, scores, groups)
    assert found.accuracy == pytest.approx(0.625)
    assert found.spread == pytest.approx(np.std([0.75, 0.5], ddof=1))
    assert found.low <= 0.625 <= found.high
    assert found.per_seed == (0.75, 0.5)


def test_no_interval_is_certain_of_itself():
    """Where all agree, or there is but one component, a bootstrap has no spread."""
    labels, right = np.ones(10, int), np.ones((3, 10))
    found = score(labels, right, np.arange(10))
    assert (found.low, found.high) == (pytest.approx(0.025 ** (1 / 10)), 1.0)
    alone = np.zeros(10, int)
    assert score(labels, right, alone).low == 0.0
    some = right.copy()
    some[0, :3] = -1
    found = difference(labels, right, some, alone)
    assert found.difference == pytest.approx(0.1) and (found.low, found.high) == (-1.0, 1.0)


def test_apart_is_the_first_minus_the_second():
    """Two of three pairs right on one set of rows, one of three on another; both by two seeds."""
    labels, groups = np.array([1, 0, 1]), np.arange(3)
    better = hits(labels, np.array([[1.0, -1, -1], [1.0, -1, -1]]))
    worse = hits(labels, np.array([[1.0, 1, -1], [1.0, 1, -1]]))
    gap, low, high = apart((better, groups), (worse, groups))
    assert gap == pytest.approx(1 / 3) and low < gap < high
    assert apart((worse, groups), (better, groups))[0] == pytest.approx(-1 / 3)


def test_difference_against_itself_is_nothing():
    labels, scores = np.array([1, 0, 1]), np.array([[1.0, 1, -1]])
    found = difference(labels, scores, scores, np.arange(3))
    assert (found.difference, found.p_value, found.mcnemar_p) == (0.0, 1.0, 1.0)


def test_mcnemar_is_the_exact_binomial():
    """Only the first arm is right in 9 rows, only the second in 2."""
    labels = np.ones(20, dtype=int)
    a, b = np.ones((1, 20)), np.ones((1, 20))
    b[0, :9], a[0, 9:11] = -1, -1
    found = difference(labels, a, b, np.arange(20))
    assert found.difference == pytest.approx(7 / 20)
    assert found.mcnemar_p == pytest.approx(binomtest(9, 11, 0.5).pvalue)


def test_sign_flips_are_counted_exactly_where_they_can_be():
    """Six components: the share of the 64 sign patterns that reach the sum."""
    gain, groups = np.array([1.0, 1, 1, 2, -1, 1]), np.arange(6)
    sums = [np.dot(signs, gain) for signs in product((1, -1), repeat=6)]
    expected = np.mean(np.abs(sums) >= 5)
    assert sign_flip_test(gain, groups) == pytest.approx(expected)


def test_rows_of_a_component_are_flipped_together():
    gain = np.ones(6)
    assert sign_flip_test(gain, np.zeros(6, int)) == 1.0  # one component says nothing
    assert sign_flip_test(gain, np.arange(6)) == pytest.approx(2 / 64)


def test_false_discovery_by_hand():
    assert false_discovery([]) == []
    assert false_discovery([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.04, 0.04])


def test_threshold_is_tuned_on_other_pairs():
    labels, scores = np.array([0, 0, 1, 1]), np.array([0.1, 0.3, 0.7, 0.9])
    margins = tuned_margin((labels, scores), np.array([0.4, 0.6]))
    assert margins == pytest.approx([-0.1, 0.1])  # the middle between 0.3 and 0.7


def test_training_that_fails_is_a_finding(
    sample: Path, pretrained: Path, capsys: pytest.CaptureFixture
):
    frame = read_pairs(sample / "train.csv", labelled=True).frame
    parts = hold_out(frame, Budget(pairs=60, evaluation=20, epochs=1), seed=1)
    training = TrainingConfig(epochs=2, precision="fp32")
    member = MemberConfig(architecture="siamese", encoder="tiny", training=training)

    def diverged(scored, batch, labels):
        return scored.logits.sum() * float("nan")

    fitted = train_member(Trial(parts, 1, pretrained, "wild"), member, objective=diverged)
    assert fitted.history == []
    outcome = fitted.outcome({"head": fitted.predict(parts.evaluation)})
    assert outcome.facts["failed"] == 1.0
    assert "wild: the loss is not finite" in capsys.readouterr().err


def test_no_backbone_has_read_what_it_is_scored_on(sample: Path, pretrained: Path, tmp_path: Path):
    given = config(sample, tmp_path, pretrained)
    everything = Budget(pairs=None, evaluation=None, epochs=1)
    place = Workplace(given, everything, sample / "train.csv", None, tmp_path)
    scored = official_column(place).divide(2020).evaluation
    held_out = {wording(text) for text in [*scored["query1"], *scored["query2"]]}
    read = {wording(text) for text in read_questions(place)}
    assert read and held_out and not read & held_out


def test_small_batches_are_for_samples_only(sample: Path, pretrained: Path, tmp_path: Path):
    given = config(sample, tmp_path, pretrained)
    part = Budget(pairs=60, evaluation=20, epochs=1)
    for architecture in ("siamese", "cross"):
        small = small_batch_member(given, architecture, part)
        base = base_member(given, architecture, part)
        cut = base.training.model_copy(update={"batch_pairs": 16})
        assert small == base.model_copy(update={"training": cut}) != base
        whole = small_batch_member(given, architecture, EVERYTHING)
        assert whole == base_member(given, architecture, EVERYTHING)


def test_the_control_of_augmentation_has_more_updates_and_no_new_pair(
    sample: Path, pretrained: Path, tmp_path: Path
):
    given = config(sample, tmp_path, pretrained)
    budget = Budget(pairs=60, evaluation=20, epochs=1)
    place = Workplace(given, budget, sample / "train.csv", None, tmp_path)
    arms = {arm.name: arm for arm in load_study("augmentation").design(place).arms}
    frame = read_pairs(sample / "train.csv", labelled=True).frame
    trial = Trial(hold_out(frame, budget, seed=1), 1, pretrained, "control")
    for control, plain in (
        ("siamese, twice the epochs", "siamese"),
        ("cross + swap, twice the epochs", "cross + swap"),
    ):
        longer, once = (arms[name].make(trial) for name in (control, plain))
        assert longer.training.equals(once.training)
        assert len(longer.history) == 2 * len(once.history)


def test_uncertain_is_between_a_fifth_and_four_fifths():
    logits = np.log(np.array([0.1, 0.21, 0.5, 0.79, 0.9]) / np.array([0.9, 0.79, 0.5, 0.21, 0.1]))
    assert is_uncertain(logits).tolist() == [False, True, True, True, False]


@given(st.text(alphabet="肺炎怎么治疗吗的没有abc？，1", max_size=12), st.integers(0, 999))
def test_edits_are_small_and_keep_what_decides(text: str, seed: int):
    for change in EDITS.values():
        found = change(text, np.random.default_rng(seed))
        assert abs(len(found) - len(text)) <= 3
        for decisive in "没有1":
            assert found.count(decisive) == text.count(decisive)
    typo = EDITS["typo"](text, np.random.default_rng(seed))
    assert len(typo) == len(text)
    assert sum(a != b for a, b in zip(typo, text, strict=True)) <= 2


@pytest.mark.parametrize(
    ("edit", "text", "expected"),
    [
        ("dropped character", "不会咳", {"不会咳"}),  # one may go, and the last one never does
        ("dropped character", "咳血吗", {"血吗", "咳吗", "咳血"}),
        ("synonym", "感冒怎么办", {"感冒咋办", "感冒如何是好"}),
    ],
)
def test_edits_by_hand(edit: str, text: str, expected: set[str]):
    found = {EDITS[edit](text, np.random.default_rng(seed)) for seed in range(40)}
    assert found == expected


def test_an_edit_depends_on_the_question_alone():
    frame = pd.DataFrame({"query1": ["甲", "乙"], "query2": ["感冒怎么办", "肺炎怎么治疗"]})
    turned = frame.iloc[::-1].reset_index(drop=True)
    changed = [edited(f, EDITS["typo"])["query2"].tolist() for f in (frame, turned)]
    assert changed[0] == changed[1][::-1]
    assert changed[0] != frame["query2"].tolist()


def test_an_attack_harms_and_leaves_the_weights(sample: Path, pretrained: Path):
    frame = read_pairs(sample / "train.csv", labelled=True).frame.iloc[:80]
    member = MemberConfig(
        architecture="siamese", encoder="tiny", training=TrainingConfig(precision="fp32")
    )
    model, tokenizer = build_model(member, pretrained, seed=0)
    before = {name: values.clone() for name, values in model.state_dict().items()}
    fitted = Fitted(model, tokenizer, member, frame, [], 0.0)
    clean, attacked = fitted.predict(frame), attacked_logits(fitted, frame, 5.0)
    sign = np.where(frame["label"] == 1, 1, -1)
    assert (sign * attacked).mean() < (sign * clean).mean() - 0.01
    assert all(torch.equal(before[name], v) for name, v in model.state_dict().items())
