"""Blending, tuning, cross-fitting and the submission file."""

import csv
from functools import partial
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from src.data.pairs import read_pairs, write_pairs
from src.ensemble import tune as tune_module
from src.ensemble.combine import Decision, blend
from src.ensemble.cross_fit import cross_fitted_labels
from src.ensemble.predicted import Predicted
from src.ensemble.submission import refuse_to_replace, validate_submission, write_submission
from src.ensemble.tune import Search, tune
from src.errors import UserError

Logits = dict[str, np.ndarray]


def synthetic(pairs: int, seed: int = 0, **noise: float) -> tuple[Logits, np.ndarray]:
    """Members whose logits are the label ±1 plus noise of the given strength."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, pairs)
    logits = {name: 2 * labels - 1 + size * rng.normal(size=pairs) for name, size in noise.items()}
    return logits, labels


def search(
    logits: Logits,
    labels: np.ndarray,
    file: Path | str = ":memory:",
    *,
    trials: int = 30,
    seed: int = 1,
    resumable: bool = False,
) -> Decision:
    settings = Search(trials, seed, f"sqlite:///{file}", resumable, "run")
    return tune(settings, predicted(logits, labels), "study")


def predicted(logits: Logits, labels: np.ndarray) -> Predicted:
    """Pairs of which each is alone with its question."""
    rows = [str(row) for row in range(len(labels))]
    frame = pd.DataFrame({"id": rows, "category": "", "query1": rows, "query2": "乙"})
    return Predicted(frame.assign(label=labels), logits, {})


def study_in(file: Path) -> optuna.Study:
    return optuna.load_study(study_name="run-study", storage=f"sqlite:///{file}")


def accuracy(decision: Decision, logits: Logits, labels: np.ndarray) -> float:
    return float(np.mean(decision.decide(logits) == labels))


# Blending.


def test_a_blend_is_the_weighted_mean_of_logits() -> None:
    logits = {"a": np.array([1.0, -2.0]), "b": np.array([3.0, 4.0])}
    assert blend(logits, {"a": 3.0, "b": 1.0}) == pytest.approx([1.5, -0.5])
    assert blend(logits, {"b": 0.0, "a": 0.2}) == pytest.approx([1.0, -2.0])


def test_a_logit_at_the_threshold_means_different() -> None:
    decision = Decision({"a": 1.0}, threshold=0.5)
    assert decision.decide({"a": np.array([0.4, 0.5, 0.6])}).tolist() == [0, 0, 1]


def loss(decision: Decision, logits: Logits, labels: np.ndarray) -> float:
    margin = blend(logits, decision.weights) - decision.threshold
    return np.logaddexp(0, np.where(labels == 1, -margin, margin)).mean()


# Tuning.


def test_the_better_member_weighs_more() -> None:
    logits, labels = synthetic(2000, good=0.7, bad=8.0)
    decision = search(logits, labels)
    assert decision.weights["good"] > 0.75
    assert sum(decision.weights.values()) == pytest.approx(1.0)
    equal = Decision({"good": 0.5, "bad": 0.5}, 0.0)
    assert accuracy(decision, logits, labels) > accuracy(equal, logits, labels) + 0.05


def test_a_shifted_member_is_met_by_the_threshold() -> None:
    logits, labels = synthetic(2000, only=0.4)
    shifted = {"only": logits["only"] + 0.6}
    decision = search(shifted, labels)
    assert decision.threshold == pytest.approx(0.6, abs=0.25)


@pytest.mark.parametrize("seed", range(5))
def test_tuning_is_never_worse_than_equal_weights(seed: int) -> None:
    # Few pairs and few trials: most trials are worse than the first.
    logits, labels = synthetic(40, seed, a=1.0, b=1.0, c=1.0)
    decision = search(logits, labels, trials=3, seed=seed)
    equal = Decision(dict.fromkeys("abc", 1 / 3), 0.0)
    assert loss(decision, logits, labels) <= loss(equal, logits, labels) + 1e-12


def test_equal_weights_stay_when_nothing_is_better() -> None:
    # One member and a blend that is right at 0 as often as it is wrong: any threshold is worse.
    logits = {"a": np.array([2.0, -2.0, 2.0, -2.0])}
    decision = search(logits, np.array([1, 0, 1, 0]))
    assert decision == Decision({"a": 1.0}, 0.0)


def test_the_seed_alone_decides() -> None:
    logits, labels = synthetic(300, a=1.0, b=1.5)
    first = search(logits, labels)
    assert search(logits, labels) == first
    assert search(logits, labels, seed=2) != first


def test_an_interrupted_search_ends_with_the_same_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logits, labels = synthetic(300, a=1.0, b=1.5)
    whole = search(logits, labels)
    calls = []

    def interrupt(*arguments: object) -> np.ndarray:
        calls.append(arguments)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return blend(*arguments)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(tune_module, "blend", interrupt)
        search(logits, labels, tmp_path / "study.db")
    assert search(logits, labels, tmp_path / "study.db") == whole


def test_the_study_can_be_opened_by_optuna_and_is_replaced(tmp_path: Path) -> None:
    logits, labels = synthetic(300, a=1.0, b=1.5)
    file = tmp_path / "study.db"
    for trials in (3, 7):
        decision = search(logits, labels, file, trials=trials)
    assert len(study_in(file).trials) == 7
    assert study_in(file).best_value == pytest.approx(loss(decision, logits, labels))


def test_a_shared_study_is_continued(tmp_path: Path) -> None:
    logits, labels = synthetic(300, a=1.0, b=1.5)
    file = tmp_path / "study.db"
    first = search(logits, labels, file, trials=4, resumable=True)
    second = search(logits, labels, file, trials=8, resumable=True)
    assert loss(second, logits, labels) <= loss(first, logits, labels)
    assert len(study_in(file).trials) == 8
    # A machine that comes when all is done takes the decision over.
    assert search(logits, labels, file, trials=8, resumable=True, seed=7) == second


# Cross-fitting.


def test_a_fold_is_decided_without_its_own_labels() -> None:
    logits, labels = synthetic(240, a=1.5, b=1.5)
    folds = np.arange(240) % 3

    def decided(some_labels: np.ndarray) -> np.ndarray:
        tuner = partial(tune, Search(10, 1, "sqlite:///:memory:", False, "run"))
        return cross_fitted_labels(predicted(logits, some_labels), folds, tuner)[0]

    before = decided(labels)
    changed = np.where(folds == 1, 1 - labels, labels)
    after = decided(changed)
    assert (before[folds == 1] == after[folds == 1]).all()
    assert (before[folds != 1] != after[folds != 1]).any(), "the other folds do see these labels"


def test_each_fold_gets_the_decision_of_the_others() -> None:
    folds = np.array([0, 1, 0, 1])
    logits = {"a": np.array([0.1, 0.1, 0.9, 0.9])}
    labels = np.array([0, 1, 0, 1])

    def tuner(inside: Predicted, part: str) -> Decision:
        # Without fold 0 only labels 1 are left, without fold 1 only labels 0.
        truth = inside.frame["label"]
        assert len(set(truth)) == 1 and len(inside.logits["a"]) == 2
        return Decision({"a": 1.0}, threshold=0.5 if truth[0] == 1 else 2.0)

    decided = cross_fitted_labels(predicted(logits, labels), folds, tuner)
    assert decided.tolist() == [[0, 0, 1, 0]] * 2


# The submission.

ids = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(
        str.strip
    ),
    min_size=1,
    max_size=8,
    unique=True,
)


def frame_of(names: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"id": names, "category": "", "query1": "甲", "query2": "乙", "label": -1})


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("submission")


@given(ids, st.randoms())
def test_ids_survive_and_labels_are_integers(folder: Path, names: list[str], random) -> None:
    labels = np.array([random.randint(0, 1) for _ in names])
    write_submission(frame_of(names), labels, folder / "a.csv")
    with open(folder / "a.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [["id", "label"], *([n, str(v)] for n, v in zip(names, labels, strict=True))]


def test_odd_ids_keep_their_spelling_from_the_test_file_on(tmp_path: Path) -> None:
    write_pairs(frame_of(["007", "a,b", " x", "1e3", '"q"', "测试"]), tmp_path / "test.csv")
    test = read_pairs(tmp_path / "test.csv", labelled=False).frame
    write_submission(test, np.array([1, 0, 1, 0, 1, 0]), tmp_path / "submission.csv")
    text = (tmp_path / "submission.csv").read_bytes().decode()
    assert text == 'id,label\n007,1\n"a,b",0\n x,1\n1e3,0\n"""q""",1\n测试,0\n'


def write_rows(path: Path, rows: list[list[str]]) -> Path:
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


@settings(max_examples=50)
@given(ids.filter(lambda names: len(names) > 1), st.data())
def test_another_order_of_ids_is_refused(folder: Path, names: list[str], data) -> None:
    order = data.draw(st.permutations(names).filter(lambda found: found != names))
    rows = [["id", "label"], *([name, "1"] for name in order)]
    with pytest.raises(UserError, match="column id"):
        validate_submission(write_rows(folder / "b.csv", rows), frame_of(names))


@given(st.text(st.characters(exclude_categories=["Cs"])).filter(lambda v: v not in ("0", "1")))
def test_any_other_label_is_refused(folder: Path, label: str) -> None:
    rows = [["id", "label"], ["a", "1"], ["b", label]]
    with pytest.raises(UserError, match="line 3, column label"):
        validate_submission(write_rows(folder / "c.csv", rows), frame_of(["a", "b"]))


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [["label", "id"], ["1", "a"], ["0", "b"]],
        [["a", "1"], ["b", "0"]],
        [["id", "label"], ["a", "1"]],
        [["id", "label"], ["a", "1"], ["b", "0"], ["c", "0"]],
        [["id", "label"], ["a", "1"], ["a", "0"]],
        [["id", "label"], ["a", "1"], ["b", "0", "0.7"]],
    ],
    ids="empty columns headless short long doubled wide".split(),
)
def test_another_shape_is_refused(tmp_path: Path, rows: list[list[str]]) -> None:
    with pytest.raises(UserError):
        validate_submission(write_rows(tmp_path / "d.csv", rows), frame_of(["a", "b"]))


def test_a_pair_without_a_question_is_different(tmp_path: Path) -> None:
    frame = frame_of(["a", "b", "c"]).assign(query2=["乙", "", "nan"])
    assert write_submission(frame, np.ones(3, int), tmp_path / "s.csv").tolist() == [1, 0, 0]
    assert (tmp_path / "s.csv").read_text() == "id,label\na,1\nb,0\nc,0\n"


def test_what_would_be_lost_is_not_replaced(tmp_path: Path) -> None:
    source, link, other = (tmp_path / name for name in ("x.csv", "y.csv", "notes.csv"))
    source.write_text("query1,query2\n甲,乙\n", "utf-8")
    link.symlink_to(source)
    for target in (source, link, tmp_path / "." / "x.csv", tmp_path / "z" / ".." / "x.csv"):
        (tmp_path / "z").mkdir(exist_ok=True)
        with pytest.raises(UserError, match="is read"):
            refuse_to_replace(target, source, force=True)
    other.write_text("mine\n")
    with pytest.raises(UserError, match="--force"):
        refuse_to_replace(other, source, force=False)
    refuse_to_replace(other, source, force=True)
    other.write_text("id,label\n7,1\n")
    refuse_to_replace(other, source, force=False)
    refuse_to_replace(tmp_path / "new.csv", source, force=False)


def test_a_member_that_learned_nothing_has_no_weight() -> None:
    logits, labels = synthetic(200, good=0.5, better=0.1)
    settings = Search(10, 1, "sqlite:///:memory:", False, "run")
    decision = tune(settings, predicted(logits, labels), "study", failed={"better"})
    assert decision.weights == {"good": 1.0, "better": 0.0}


def test_an_invalid_submission_never_replaces_a_valid_one(tmp_path: Path) -> None:
    target = tmp_path / "submission.csv"
    write_submission(frame_of(["a", "b"]), np.array([0, 1]), target)
    before = target.read_bytes()
    with pytest.raises(UserError, match="label"):
        write_submission(frame_of(["a", "b"]), np.array([1, 2]), target)
    with pytest.raises(ValueError):
        write_submission(frame_of(["a", "b"]), np.array([1]), target)
    assert target.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["submission.csv"]
