"""Scores against values worked out by hand, and rules that hold for all inputs."""

import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from src.report.checks import pair_losses
from src.report.intervals import accuracy_interval, mcnemar, paired_difference
from src.report.scores import (
    accuracy,
    accuracy_by_threshold,
    calibration_bins,
    confident_mistakes,
    expected_calibration_error,
    per_category,
)

ROOT = Path(__file__).parents[2]
unhurried = settings(deadline=None)  # the first call imports scipy.stats
answers = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 5)), min_size=1, max_size=40
)


def predictions_with(wrong: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Alternating labels, and predictions that are wrong where `wrong` is true."""
    labels = np.arange(len(wrong)) % 2
    return labels, np.where(wrong, 1 - labels, labels)


def test_accuracy_is_the_share_of_right_rows() -> None:
    assert accuracy([1, 0, 1, 0], [1, 0, 0, 0]) == 0.75


@pytest.mark.parametrize(
    ("labels", "predictions"),
    [([], []), ([1, 0], [1]), ([1, -1], [1, 0]), ([1, 0], [1, 0.7]), ([[1, 0]], [[1, 0]])],
    ids=["no rows", "other length", "unlabelled row", "a probability", "a matrix"],
)
def test_accuracy_refuses_what_it_cannot_score(labels: list, predictions: list) -> None:
    with pytest.raises(ValueError):
        accuracy(labels, predictions)


# --- intervals -----------------------------------------------------------------------------


def test_interval_of_single_row_groups_is_the_binomial_one() -> None:
    labels, predictions = predictions_with(np.arange(2000) % 10 == 0)
    low, high = accuracy_interval(labels, predictions, np.arange(2000))
    half = 1.96 * math.sqrt(0.9 * 0.1 / 2000)
    assert low == pytest.approx(0.9 - half, abs=0.002)
    assert high == pytest.approx(0.9 + half, abs=0.002)


def test_interval_widens_with_the_root_of_the_cluster_size() -> None:
    # 100 components of 16 rows, each wholly right or wholly wrong: 100 observations, not 1600.
    labels, predictions = predictions_with(np.repeat(np.arange(100) % 5 == 0, 16))
    single = accuracy_interval(labels, predictions, np.arange(1600))
    clustered = accuracy_interval(labels, predictions, np.repeat(np.arange(100), 16))
    ratio = (clustered[1] - clustered[0]) / (single[1] - single[0])
    assert ratio == pytest.approx(4, rel=0.15)


def test_interval_covers_the_truth_as_often_as_it_claims() -> None:
    # Each component has its own accuracy; the mean over components is 0.8.
    rng = np.random.default_rng(7)
    groups = np.repeat(np.arange(150), 6)
    clustered = independent = 0
    for _ in range(200):
        wrong = rng.random(900) > np.repeat(rng.beta(4, 1, 150), 6)
        labels, predictions = predictions_with(wrong)
        low, high = accuracy_interval(labels, predictions, groups, resamples=400)
        clustered += low <= 0.8 <= high
        low, high = accuracy_interval(labels, predictions, np.arange(900), resamples=400)
        independent += low <= 0.8 <= high
    assert 0.90 <= clustered / 200 <= 0.99
    assert independent < clustered


def test_higher_level_is_wider_and_the_seed_decides() -> None:
    wrong = np.random.default_rng(0).random(500) < 0.2
    labels, predictions = predictions_with(wrong)
    groups = np.arange(500) // 3
    narrow = accuracy_interval(labels, predictions, groups, level=0.5)
    wide = accuracy_interval(labels, predictions, groups, level=0.99)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    first = accuracy_interval(labels, predictions, groups, seed=1)
    assert first == accuracy_interval(labels, predictions, groups, seed=1)
    assert first != accuracy_interval(labels, predictions, groups, seed=2)


def test_perfect_score_is_not_certain() -> None:
    # Clopper-Pearson with 10 trials: 0.025 ** (1 / 10) = 0.6915.
    labels, predictions = predictions_with(np.zeros(30, bool))
    groups = np.arange(30) % 10
    assert accuracy_interval(labels, predictions, groups) == (pytest.approx(0.6915, abs=1e-4), 1)
    low, high = accuracy_interval(labels, 1 - predictions, groups)
    assert (low, high) == (0, pytest.approx(1 - 0.6915, abs=1e-4))


def test_one_component_says_nothing() -> None:
    assert accuracy_interval([1, 0, 1], [1, 0, 0], [4, 4, 4]) == (0, 1)
    assert paired_difference([1, 0], [1, 0], [1, 1], [4, 4]) == (0.5, -1, 1)


@unhurried
@given(answers)
def test_interval_depends_on_neither_row_order_nor_group_names(rows: list) -> None:
    labels, predictions, groups = (np.array(column) for column in zip(*rows, strict=True))
    given_order = accuracy_interval(labels, predictions, groups, resamples=50)
    reversed_order = accuracy_interval(
        labels[::-1], predictions[::-1], -7 * groups[::-1], resamples=50
    )
    assert given_order == reversed_order
    assert 0 <= given_order[0] <= given_order[1] <= 1


def test_interval_refuses_groups_of_another_length() -> None:
    with pytest.raises(ValueError, match="align"):
        accuracy_interval([1, 0], [1, 0], [0])


def test_interval_is_fast() -> None:
    rng = np.random.default_rng(0)
    labels, predictions = predictions_with(rng.random(10_000) < 0.07)
    groups = rng.zipf(1.6, 10_000) % 3000
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        accuracy_interval(labels, predictions, groups)
        best = min(best, time.perf_counter() - start)
    assert best < 0.15  # 0.02 s on a quiet machine


# --- two models on the same rows -----------------------------------------------------------


def test_paired_difference_of_equal_predictions_is_zero() -> None:
    labels, predictions = predictions_with(np.arange(60) % 7 == 0)
    assert paired_difference(labels, predictions, predictions, np.arange(60)) == (0, 0, 0)


def test_paired_difference_is_narrower_than_the_scores_it_compares() -> None:
    wrong = np.random.default_rng(3).random(1000) < 0.2
    labels, a = predictions_with(wrong)
    b = a.copy()
    b[:20] = 1 - labels[:20]  # b shares a's mistakes and adds some
    added = int((~wrong[:20]).sum())
    groups = np.arange(1000)
    difference, low, high = paired_difference(labels, a, b, groups)
    assert difference == pytest.approx(added / 1000)
    assert 0 < low < difference < high
    alone = accuracy_interval(labels, a, groups)
    assert high - low < 0.5 * (alone[1] - alone[0])


@unhurried
@given(answers)
def test_swapping_the_models_flips_the_difference(rows: list) -> None:
    a, b, groups = (np.array(column) for column in zip(*rows, strict=True))
    labels = np.ones(len(rows), int)
    difference, low, high = paired_difference(labels, a, b, groups, resamples=50)
    swapped = paired_difference(labels, b, a, groups, resamples=50)
    assert swapped[0] == -difference
    assert low <= high and swapped[1] <= swapped[2]


@unhurried
@given(st.integers(0, 25), st.integers(0, 25), st.integers(0, 5), st.integers(0, 5))
def test_mcnemar_is_the_closed_form(only_a: int, only_b: int, both: int, none: int) -> None:
    if only_a + only_b + both + none == 0:
        both = 1
    a = np.array([1] * only_a + [0] * only_b + [1] * both + [0] * none)
    b = np.array([0] * only_a + [1] * only_b + [1] * both + [0] * none)
    trials = only_a + only_b
    tail = sum(math.comb(trials, k) for k in range(min(only_a, only_b) + 1)) / 2**trials
    expected = min(1.0, 2 * tail)
    assert mcnemar(np.ones(len(a), int), a, b) == pytest.approx(expected, rel=1e-9)


def test_mcnemar_by_hand() -> None:
    # Six rows only b gets right, none only a: 2 * (1/2)^6.
    assert mcnemar([1] * 8, [0] * 6 + [1, 0], [1] * 6 + [1, 0]) == pytest.approx(2 / 64)


# --- probabilities -------------------------------------------------------------------------


def test_pair_losses_by_hand() -> None:
    # p = 3/4 for a positive, p = 1/5 for a negative.
    loss = pair_losses([1, 0], [math.log(3), math.log(1 / 4)]).mean()
    assert loss == pytest.approx(-(math.log(3 / 4) + math.log(4 / 5)) / 2)
    assert pair_losses([1, 0], [0, 0]) == pytest.approx([math.log(2)] * 2)


def test_pair_losses_survives_huge_logits_and_refuses_nan() -> None:
    assert pair_losses([1, 0], [1000, 1000]) == pytest.approx([0, 1000])
    with pytest.raises(ValueError, match="finite"):
        pair_losses([1, 0], [math.nan, 0])


def test_calibration_bins_by_hand() -> None:
    first, second = calibration_bins([0, 1, 1, 1], [0.1, 0.3, 0.8, 1.0], bins=2)
    assert (first.low, first.high, first.pairs) == (0, 0.5, 2)
    assert (first.mean_probability, first.positive_rate) == (pytest.approx(0.2), 0.5)
    assert (second.pairs, second.mean_probability, second.positive_rate) == (2, 0.9, 1)
    error = expected_calibration_error([0, 1, 1, 1], [0.1, 0.3, 0.8, 1.0], bins=2)
    assert error == pytest.approx(0.5 * 0.3 + 0.5 * 0.1)


@unhurried
@given(
    st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1)), min_size=1, max_size=30),
    st.integers(1, 120),
)
def test_every_pair_is_in_the_bin_of_its_probability(rows: list, bins: int) -> None:
    labels, probabilities = zip(*rows, strict=True)
    points = calibration_bins(labels, probabilities, bins)
    assert sum(point.pairs for point in points) == len(rows)
    for point in points:
        inside = [p for p in probabilities if point.low <= p < point.high or p == point.high == 1]
        assert len(inside) == point.pairs
    assert 0 <= expected_calibration_error(labels, probabilities, bins) <= 1


def test_calibration_refuses_logits() -> None:
    with pytest.raises(ValueError, match="logits"):
        calibration_bins([0, 1], [-2.0, 3.0])


@unhurried
@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(-4, 4)), min_size=1, max_size=30),
    st.integers(-5, 5),
)
def test_threshold_curve_agrees_with_predicting(rows: list, threshold: int) -> None:
    labels, logits = (np.array(column) for column in zip(*rows, strict=True))
    thresholds, accuracies = accuracy_by_threshold(labels, logits)
    assert np.all(np.diff(thresholds) > 0)
    at = accuracies[np.searchsorted(thresholds, threshold, side="right") - 1]
    assert at == pytest.approx(accuracy(labels, (logits > threshold).astype(int)))


# --- pair frames ---------------------------------------------------------------------------


def pair_frame(labels: list[int], categories: list[str]) -> pd.DataFrame:
    numbers = [str(i) for i in range(len(labels))]
    return pd.DataFrame(
        {
            "id": numbers,
            "category": categories,
            "query1": [f"q{i}" for i in numbers],
            "query2": [f"r{i}" for i in numbers],
            "label": labels,
        }
    )


def test_per_category() -> None:
    frame = pair_frame([1, 0, 1, 0, 1], ["感冒", "肺炎", "肺炎", "肺炎", "感冒"])
    pneumonia, cold = per_category(frame, [1, 0, 1, 1, 1])
    assert (pneumonia.category, pneumonia.pairs, pneumonia.interval) == ("肺炎", 3, None)
    assert pneumonia.accuracy == pytest.approx(2 / 3)
    assert (cold.category, cold.pairs, cold.accuracy) == ("感冒", 2, 1.0)
    pneumonia, cold = per_category(frame, [1, 0, 1, 1, 1], component=[0, 1, 2, 3, 0])
    assert pneumonia.interval == accuracy_interval([0, 1, 0], [0, 1, 1], [1, 2, 3])
    assert cold.interval == (0, 1)  # one component only


def test_confident_mistakes_come_farthest_first() -> None:
    frame = pair_frame([1, 0, 1, 0, 1, 0], [""] * 6)
    # The last row is right only because its logit lies under the threshold.
    mistakes = confident_mistakes(frame, [-1, 2, 3, -2, -800, 0.3], threshold=0.5)
    assert list(mistakes["id"]) == ["4", "0", "1"]  # tie at distance 1.5: file order decides
    assert mistakes["probability"].iloc[0] == 0
    assert mistakes["probability"].iloc[2] == pytest.approx(1 / (1 + math.exp(-2)))
    assert list(confident_mistakes(frame, [-1, 2, 3, -2, -9, 0], 0.5, limit=1)["id"]) == ["4"]
    assert confident_mistakes(frame, [1, -1, 1, -1, 1, 0.3], 0.5).empty


def test_importing_the_metrics_does_not_import_the_slow_libraries() -> None:
    program = (
        "import sys, src.report.scores;"
        "sys.exit(any(m in sys.modules for m in ('sklearn', 'scipy.stats', 'pandas', 'torch')))"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0


@pytest.mark.skipif("TIANCHI_DATA" not in os.environ, reason="TIANCHI_DATA is not set")
def test_interval_on_the_competition_dev_set_is_wider_than_the_binomial() -> None:
    """The questions of dev are shared by several pairs; mistakes on a question come together."""
    frame = pd.read_csv(Path(os.environ["TIANCHI_DATA"]) / "tianchi" / "dev.csv")
    groups = pd.factorize(frame["query1"])[0]
    wrong = np.random.default_rng(1).random(groups.max() + 1)[groups] < 0.07
    labels = frame["label"].to_numpy()
    predictions = np.where(wrong, 1 - labels, labels)
    clustered = accuracy_interval(labels, predictions, groups)
    single = accuracy_interval(labels, predictions, np.arange(len(frame)))
    assert clustered[1] - clustered[0] > 1.5 * (single[1] - single[0])
