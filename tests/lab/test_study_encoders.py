"""The encoders of the encoder study: shapes, padding, saving, and what they are made of."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from src.config import MemberConfig
from src.data.pairs import read_pairs
from src.lab.studies.encoders.text_vocabulary import UNKNOWN, TextVocabulary
from src.lab.studies.encoders.word2vec import skip_gram
from src.lab.studies.on_encoder import LEXICAL, SIZE, build_frozen, build_lexical
from src.models.tokens import Tokens

ROWS = 30
NAMES = list(LEXICAL)
SIZES = {"TextCNN": 3 * SIZE, "BiLSTM": 2 * SIZE, "BiLSTM, self-attention": 4 * SIZE}


def make(name: str, seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    return LEXICAL[name].make(torch.randn(ROWS, SIZE), 0.1).eval()


@pytest.fixture(scope="module", params=NAMES)
def encoder(request: pytest.FixtureRequest) -> torch.nn.Module:
    return make(request.param)


@pytest.mark.parametrize("name", NAMES)
def test_shape(name: str):
    encoder = make(name)
    vectors = encoder.embed(Tokens.pack([[1], [2, 3, 4], [5] * 9]), "mean")
    assert vectors.shape == (3, encoder.hidden_size) == (3, SIZES.get(name, SIZE))
    assert vectors.dtype == torch.float32 and vectors.isfinite().all()


@settings(max_examples=25)
@given(
    question=st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=12),
    others=st.lists(
        st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=20), min_size=1, max_size=4
    ),
    place=st.integers(0, 4),
)
def test_padding_never_changes_an_embedding(encoder, question, others, place: int):
    """A question's vector is the same alone and in a batch with longer and shorter ones."""
    place = min(place, len(others))
    batch = [*others[:place], question, *others[place:]]
    with torch.no_grad():
        alone = encoder.embed(Tokens.pack([question]), "mean")[0]
        together = encoder.embed(Tokens.pack(batch), "mean")[place]
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_saved_and_loaded(name: str, tmp_path: Path):
    first, second = make(name, seed=0), make(name, seed=1)
    tokens = Tokens.pack([[1, 2, 3], [4]])
    save_file(first.state_dict(), tmp_path / "model.safetensors")
    assert not torch.equal(first.embed(tokens, "mean"), second.embed(tokens, "mean"))
    second.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert torch.equal(first.embed(tokens, "mean"), second.embed(tokens, "mean"))


@pytest.mark.parametrize("name", [name for name in NAMES if "averaged" not in name])
def test_word_order_matters_but_not_to_an_average(name: str):
    tokens, turned = Tokens.pack([[1, 2, 3, 4]]), Tokens.pack([[4, 3, 2, 1]])
    encoder, mean = make(name), make("word2vec averaged, words")
    assert not torch.allclose(encoder.embed(tokens, "mean"), encoder.embed(turned, "mean"))
    torch.testing.assert_close(mean.embed(tokens, "mean"), mean.embed(turned, "mean"))


def test_vocabulary_numbers_units_and_knows_the_unknown():
    vocabulary = TextVocabulary.of(["肺炎吗", "ＣＴ"], "characters")
    assert vocabulary.units == ("<unk>", "肺", "炎", "吗", "c", "t")
    ids = vocabulary(["炎 肺炎", "咳ct", ""], max_length=3)["input_ids"]
    assert ids == [[2, 1, 2], [UNKNOWN, 4, 5], [UNKNOWN]]


def test_words_are_jiebas():
    vocabulary = TextVocabulary.of(["支气管炎怎么治疗"], "words")
    assert "支气管炎" in vocabulary.units


def test_word_vectors_are_reproducible_and_scaled():
    questions = ["肺炎怎么治疗", "肺炎如何治疗", "感冒怎么办"] * 5
    vocabulary = TextVocabulary.of(questions, "characters")
    table = skip_gram(questions, vocabulary, 8, seed=1)
    assert table.shape == (len(vocabulary), 8)
    assert torch.equal(table, skip_gram(questions, vocabulary, 8, seed=1))
    assert not torch.equal(table, skip_gram(questions, vocabulary, 8, seed=2))
    assert table[UNKNOWN].abs().sum() == 0
    assert table[1:].square().mean().item() == pytest.approx(1.0, rel=1e-5)


def test_averaged_vectors_are_fixed_and_a_frozen_encoder_is(pretrained: Path):
    assert not make("word2vec averaged, words").word_embeddings.weight.requires_grad
    member = MemberConfig(architecture="siamese", encoder="tiny")
    model, _ = build_frozen(member, pretrained, seed=0)
    assert not any(p.requires_grad for p in model.encoder.parameters())
    assert all(p.requires_grad for p in model.head.parameters())


def test_network_over_words_answers_symmetrically(sample: Path):
    frame = read_pairs(sample / "train.csv", labelled=True).frame.iloc[:20]
    member = MemberConfig(architecture="siamese", encoder="x")
    questions = sorted({*frame["query1"], *frame["query2"]})
    model, vocabulary = build_lexical(LEXICAL["TextCNN"], member, questions, seed=0)
    from src.models.siamese import SiamesePairs

    swapped = frame.rename(columns={"query1": "query2", "query2": "query1"})
    logits = [model.predict(SiamesePairs(f, vocabulary, 64)) for f in (frame, swapped)]
    assert logits[0] == pytest.approx(logits[1], abs=1e-5)
