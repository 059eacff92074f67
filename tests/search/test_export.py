"""Exported models, loaded by the tools they are for, give the project's own predictions."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.util import paraphrase_mining

from src.data.pairs import read_pairs
from src.errors import UserError
from src.search import Matcher
from src.search.cards import model_card
from src.search.export import export
from src.search.index import open_index
from src.search.mine import mine
from src.search.onnx import MODEL, MODEL_INT8, run_onnx


@pytest.fixture(scope="module")
def pairs(sample: Path) -> list[tuple[str, str]]:
    frame = read_pairs(sample / "dev.csv", labelled=True).frame.iloc[:40]
    long = "感冒发烧咳嗽" * 40  # more tokens than a model reads
    return [*zip(frame["query1"], frame["query2"], strict=True), (long, "感冒吗"), ("😷？", long)]


@pytest.fixture(scope="module")
def questions(pairs) -> list[str]:
    return [question for pair in pairs for question in pair]


@pytest.fixture(scope="module")
def folders(matcher: Matcher, tmp_path_factory) -> tuple[Path, Path]:
    return tuple(export(matcher, tmp_path_factory.mktemp("exported"), int8=True))


def logit(probability: np.ndarray) -> np.ndarray:
    return np.log(probability) - np.log1p(-probability)


def both_orders(predict, pairs) -> np.ndarray:
    """Probabilities as the project makes them: from the mean of both orders' logits."""
    logits = [predict(pairs), predict([(second, first) for first, second in pairs])]
    return 1 / (1 + np.exp(-np.mean(logits, axis=0)))


def test_bi_encoder_in_sentence_transformers(matcher: Matcher, folders, questions):
    model = SentenceTransformer(str(folders[0]), device="cpu")
    cosines = np.sum(matcher.encode(questions) * model.encode(questions), axis=1)
    assert cosines.min() >= 0.9999
    assert model.get_max_seq_length() == matcher.chosen.member.max_length


def test_cross_encoder_in_sentence_transformers(matcher: Matcher, folders, pairs):
    model = CrossEncoder(str(folders[1]), device="cpu")
    found = both_orders(lambda some: logit(model.predict(some).astype(float)), pairs)
    assert np.abs(found - matcher.rerank(pairs)).max() < 1e-4


def test_bi_encoder_in_onnxruntime(matcher: Matcher, folders, questions):
    own = matcher.encode(questions)
    assert np.sum(own * run_onnx(folders[0], MODEL, questions, batch=7), axis=1).min() >= 0.9999
    one = run_onnx(folders[0], MODEL, questions[:1])
    assert one.shape == (1, own.shape[1]) and np.sum(own[0] * one[0]) >= 0.9999


def test_cross_encoder_in_onnxruntime(matcher: Matcher, folders, pairs):
    found = both_orders(lambda some: run_onnx(folders[1], MODEL, some, batch=7)[:, 0], pairs)
    assert np.abs(found - matcher.rerank(pairs)).max() < 1e-4


def test_int8_is_smaller_and_close(matcher: Matcher, folders, questions, pairs):
    for folder in folders:
        sizes = [(folder / "onnx" / name).stat().st_size for name in (MODEL, MODEL_INT8)]
        assert sizes[1] < 0.5 * sizes[0]
    theirs = run_onnx(folders[0], MODEL_INT8, questions)
    assert np.sum(matcher.encode(questions) * theirs, axis=1).min() > 0.99
    found = both_orders(lambda some: run_onnx(folders[1], MODEL_INT8, some)[:, 0], pairs)
    assert np.abs(found - matcher.rerank(pairs)).max() < 0.05


def test_mining_agrees_with_the_library(matcher: Matcher, folders, questions, tmp_path: Path):
    path = tmp_path / "questions.txt"
    path.write_text("\n".join(questions), "utf-8")
    index = open_index(path, matcher)
    model = SentenceTransformer(str(folders[0]), device="cpu")
    theirs = paraphrase_mining(model, index.corpus.questions, max_pairs=20, top_k=20)
    own = mine(index, 20)
    assert np.allclose([pair[0] for pair in own], [pair[0] for pair in theirs], atol=1e-4)
    assert {pair[1:] for pair in own[:10]} == {tuple(sorted(pair[1:])) for pair in theirs[:10]}


def test_cards_say_what_it_is(matcher: Matcher, folders):
    for folder, piece in zip(folders, (matcher.chosen, matcher.chosen_cross), strict=True):
        card = (folder / "README.md").read_text("utf-8")
        assert f"member `{piece.name}` of profile `tiny`, fold {piece.fold}" in card
        assert "model_int8.onnx" in card and "license: mit" in card
        assert "Tianchi competition 231776" in card
    assert not list(folders[0].rglob("*.bin")) + list(folders[1].rglob("*.bin"))


def test_a_card_claims_no_more_than_is_known(matcher: Matcher, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("src.search.cards.read_json", lambda _: {"is_sample": True})
    member = matcher.chosen.member.model_copy(update={"encoder": str(tmp_path)})
    monkeypatch.setattr(matcher, "chosen", replace(matcher.chosen, member=member))
    card = model_card(matcher, matcher.chosen, matcher.bi, int8=False)
    assert "this project's small sample" in card and "Tianchi" not in card
    assert "license:" not in card and str(tmp_path) not in card and tmp_path.name in card


def test_an_export_is_not_overwritten(matcher: Matcher, folders):
    with pytest.raises(UserError, match="is there already"):
        export(matcher, folders[0].parent, int8=False)


def test_a_failed_export_leaves_nothing(matcher: Matcher, tmp_path: Path, monkeypatch):
    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("src.search.export.write_onnx", full_disk)
    with pytest.raises(UserError, match="No space left"):
        export(matcher, tmp_path, int8=False)
    assert list(tmp_path.iterdir()) == []
