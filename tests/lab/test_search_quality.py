"""The measured worth of the cosine: no label of dev chooses a threshold, and sums are right."""

import numpy as np
import pandas as pd
import pytest

from src.lab.benchmark.search_benchmark import exported
from src.lab.benchmark.vector_quality import (
    on_dev,
    out_of_fold,
    own_threshold,
    pair_cosines,
    pair_threshold,
)
from src.layout import Layout
from src.search import Matcher


def test_pair_cosines_by_hand():
    frame = pd.DataFrame({"query1": ["a", "b", "c"], "query2": ["b", "a", "c"]})
    vectors = np.array([[1, 0], [0.6, 0.8], [0, 1]], np.float32)
    assert pair_cosines(frame, ["a", "b", "c"], vectors) == pytest.approx([0.6, 0.6, 1.0])


def test_the_pair_threshold_has_the_highest_accuracy():
    """Cosines 1, 0.8, 0.6, 0 to the first: from 0.6 on, four of four are right."""
    vectors = np.array([[1, 0], [0.8, 0.6], [0.6, 0.8], [0, 1]], np.float32)
    frame = pd.DataFrame({"query1": list("aaaa"), "query2": list("abcd"), "label": [1, 1, 1, 0]})
    assert pair_threshold(frame, list("abcd"), vectors) == pytest.approx(0.6)
    frame["label"] = [1, 0, 0, 0]
    assert pair_threshold(frame, list("abcd"), vectors) == pytest.approx(1.0)


def test_no_tuned_weights_gain_nothing(matcher: Matcher):
    found = out_of_fold(matcher)
    rows = found["share of the tuned weights"]
    assert found["queries"] > 0 and list(rows) == ["0", "0.25", "0.5", "0.75", "1"]
    assert rows["0"]["gain"] == 0 and rows["0"]["gain_interval"] == [0, 0]
    assert rows["1"]["auc"] != rows["0"]["auc"]


def test_labels_of_dev_choose_no_threshold(matcher: Matcher, monkeypatch):
    """With all labels of dev turned round, what was right is wrong, under the same thresholds."""
    found = on_dev(matcher)
    read = Layout.table

    def flipped(layout: Layout, role: str) -> pd.DataFrame | None:
        frame = read(layout, role)
        return frame.assign(label=1 - frame["label"]) if role == "dev" else frame

    monkeypatch.setattr(Layout, "table", flipped)
    turned = on_dev(matcher)
    assert turned["head_accuracy"] == pytest.approx(1 - found["head_accuracy"], abs=2e-4)
    for vectors in ("untuned", "tuned", "mean"):
        one, other = found[vectors], turned[vectors]
        assert other["accuracy"] == pytest.approx(1 - one["accuracy"], abs=2e-4)
        assert other["auc"] == pytest.approx(1 - one["auc"], abs=2e-4)
        assert other["cluster_threshold"] == one["cluster_threshold"]


def test_only_rows_outside_the_training_choose_the_threshold(matcher: Matcher, monkeypatch):
    """Labels of the pairs that the model was trained on change nothing, those of its fold do."""
    read, own = Layout.train, matcher.layout.fold_numbers() == matcher.chosen.fold
    found = own_threshold(matcher, matcher.encode)

    def with_flipped(rows: np.ndarray) -> float:
        def flipped(layout: Layout) -> pd.DataFrame:
            frame = read(layout)
            return frame.assign(label=frame["label"].where(~rows, 1 - frame["label"]))

        monkeypatch.setattr(Layout, "train", flipped)
        return own_threshold(matcher, matcher.encode)

    assert with_flipped(~own) == found
    assert with_flipped(own) != found


def test_the_bench_of_exports_finds_them_equal(matcher: Matcher, tmp_path):
    found = exported(matcher, tmp_path)
    assert found["sentence_transformers_cosine"] > 0.9999 and found["onnx_cosine"] > 0.9999
    assert found["cross_encoder_difference"] < 1e-4 and found["cross_onnx_difference"] < 1e-4
    for small, large in zip(found["int8_mb"], found["fp32_mb"], strict=True):
        assert 0 < small < large
    assert all(0 < accuracy < 1 for accuracy in found["bi_accuracy_fp32_int8"])
