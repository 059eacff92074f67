"""Siamese and cross-encoder: symmetry, one encoding a question, prediction, truncation."""

import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from tokenizers import processors
from torch import nn

from src.config import MemberConfig
from src.data.pairs import read_pairs
from src.errors import UserError
from src.files import save_tensors, write_json
from src.models import cross_encoder as cross_module
from src.models import siamese as siamese_module
from src.models.cross_encoder import CrossEncoder, CrossPairs
from src.models.ngram import MODEL_TYPE, NgramEncoder
from src.models.pooling import pool
from src.models.registry import build_model, load_encoder, read_pairs_for
from src.models.siamese import Siamese, SiamesePairs
from src.models.tokens import Tokens

FEATURES = [("u", "v", "|u-v|"), ("u", "v", "|u-v|", "u*v"), ("|u-v|", "u*v"), ("u", "v"), ("v",)]


def make_frame(pairs):
    first, second = zip(*pairs, strict=True)
    ids = [str(row) for row in range(len(pairs))]
    columns = {"id": ids, "category": "", "query1": first, "query2": second, "label": -1}
    return pd.DataFrame(columns)


def swapped(frame):
    return frame.rename(columns={"query1": "query2", "query2": "query1"})


@pytest.fixture(scope="module")
def frame(sample):
    """30 pairs of the sample, and one of a question with itself."""
    rows = read_pairs(sample / "dev.csv", labelled=True).frame.head(30)
    twin = rows.head(1).assign(query2=rows["query1"][0])
    return pd.concat([rows, twin], ignore_index=True)


@pytest.fixture(scope="module")
def tiny(pretrained):
    return load_encoder("tiny", pretrained)


@pytest.fixture(scope="module")
def tokenizer(tiny):
    return tiny[1]


@pytest.fixture(scope="module")
def siamese(tiny):
    torch.manual_seed(3)
    return Siamese(tiny[0], "mean", FEATURES[0], dropout=0.5).eval()


@pytest.fixture(scope="module")
def cross(tiny):
    torch.manual_seed(4)
    return CrossEncoder(tiny[0], dropout=0.5).eval()


@pytest.fixture
def encoded(tiny):
    """How many sequences the encoder has been given, call by call."""
    counts = []
    hook = tiny[0].register_forward_pre_hook(
        lambda _, arguments: counts.append(len(arguments[0].lengths))
    )
    yield counts
    hook.remove()


def all_rows(pairs):
    return pairs.collate(np.arange(len(pairs)), np.zeros(len(pairs), bool))


def close(found, expected):
    found, expected = (torch.as_tensor(values).double() for values in (found, expected))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


# Siamese


@pytest.mark.parametrize("features", FEATURES)
def test_a_score_does_not_depend_on_the_order_of_the_pair(tiny, features):
    torch.manual_seed(0)
    model = Siamese(tiny[0], "mean", features, dropout=0.5).eval()
    u, v = torch.randn(2, 50, 32)
    with torch.no_grad():
        assert torch.equal(model.score(u, v), model.score(v, u))
        # It does depend on both questions.
        assert not torch.allclose(model.score(u, v), model.score(u, v.roll(1, 0)))
        assert not torch.allclose(model.score(u, v), model.score(u.roll(1, 0), v))


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        (("u", "v"), [(3 + 1 - 2 + 5) / 1]),
        (("u",), [(3 + 1 - 2 + 5) / 2]),
        (("v",), [(3 + 1 - 2 + 5) / 2]),
        (("|u-v|",), [5 + 4]),
        (("u*v",), [3 * -2 + 1 * 5]),
        (("u", "v", "|u-v|", "u*v"), [7 + 9 - 1]),
    ],
)
def test_features_by_hand(tiny, features, expected):
    model = Siamese(tiny[0], "mean", features, dropout=0.0)
    model.head = nn.Linear(2 * len(features), 1, bias=False)  # it sums the features
    nn.init.ones_(model.head.weight)
    u, v = torch.tensor([[3.0, 1.0]]), torch.tensor([[-2.0, 5.0]])
    assert model.score(u, v).tolist() == expected


def test_features_stand_in_the_order_in_which_they_are_named(tiny):
    model = Siamese(tiny[0], "mean", ("|u-v|", "u*v"), dropout=0.0)
    model.head = nn.Linear(4, 1, bias=False)
    model.head.weight.data = torch.tensor([[1000.0, 100.0, 10.0, 1.0]])
    u, v = torch.tensor([[3.0, 1.0]]), torch.tensor([[2.0, 5.0]])
    assert model.score(u, v).tolist() == [1465]


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_the_pooling_is_the_one_asked_for(tiny, pooling):
    tokens = Tokens.pack([[0, 9, 8, 2], [0, 7, 2]])
    model = Siamese(tiny[0], pooling, FEATURES[0], dropout=0.0).eval()
    with torch.no_grad():
        close(model.embed(tokens), pool(tiny[0](tokens), tokens, pooling))


def test_each_distinct_question_is_encoded_once(siamese, frame, tokenizer, encoded, monkeypatch):
    distinct = len({*frame["query1"], *frame["query2"]})
    assert distinct < 2 * len(frame)
    pairs = SiamesePairs(frame, tokenizer, 64)
    siamese(all_rows(pairs))
    assert encoded == [distinct]
    encoded.clear()
    monkeypatch.setattr(siamese_module, "_QUESTIONS", 7)
    siamese.predict(pairs)
    assert sum(encoded) == distinct and max(encoded) == 7


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12))
@examples(max_examples=30)
def test_a_batch_holds_the_questions_of_its_rows(tokenizer, indices):
    questions = ["咳嗽", "发烧了怎么办", "CT", "感冒吃什么药", "肺炎会传染吗", "咳"]
    pairs = SiamesePairs(
        make_frame([(questions[a], questions[b]) for a, b in indices]), tokenizer, 64
    )
    rows = np.arange(len(pairs))[::-2].copy()
    batch = pairs.collate(rows, np.zeros(len(rows), bool))
    tokens = batch.tokens
    bounds = torch.cumsum(tokens.lengths, 0).tolist()
    held = [
        tokenizer.decode(tokens.ids[end - size : end], skip_special_tokens=True)
        for end, size in zip(bounds, tokens.lengths, strict=True)
    ]
    assert len(held) == len({index for row in rows for index in indices[row]})
    found = [(held[a], held[b]) for a, b in zip(batch.left, batch.right, strict=True)]
    assert found == [(questions[indices[row][0]], questions[indices[row][1]]) for row in rows]


def test_groups_are_pairs_with_the_same_first_question(tokenizer):
    pairs = SiamesePairs(
        make_frame([("咳", "痰"), ("烧", "咳"), ("咳", "烧"), ("痰", "咳")]), tokenizer, 64
    )
    groups = pairs.groups
    assert groups[0] == groups[2] and len({groups[0], groups[1], groups[3]}) == 3


@pytest.mark.parametrize("batch_size", [1, 7, 128])
def test_siamese_prediction_equals_the_forward_pass(
    siamese, frame, tokenizer, batch_size, monkeypatch
):
    pairs = SiamesePairs(frame, tokenizer, 64)
    with torch.no_grad():
        expected = siamese(all_rows(pairs)).logits
    monkeypatch.setattr(siamese_module, "_QUESTIONS", batch_size)
    logits = siamese.predict(pairs)
    assert logits.dtype == np.float64 and np.ptp(logits) > 0.01
    close(logits, expected)
    close(siamese.predict(SiamesePairs(swapped(frame), tokenizer, 64)), expected)


def test_a_long_table_keeps_the_order_of_its_rows(siamese, tokenizer):
    # More rows than are scored at a time.
    questions = ["咳嗽", "发烧了怎么办", "CT", "感冒吃什么药"]
    few = [(a, b) for a in questions for b in questions]
    expected = siamese.predict(SiamesePairs(make_frame(few), tokenizer, 64))
    chosen = np.random.default_rng(0).integers(0, len(few), 9000)
    long = SiamesePairs(make_frame([few[index] for index in chosen]), tokenizer, 64)
    close(siamese.predict(long), expected[chosen])


# Cross-encoder


def test_cross_prediction_averages_both_orders(cross, frame, tokenizer):
    pairs = CrossPairs(frame, tokenizer, 64)
    rows = np.arange(len(pairs))
    with torch.no_grad():
        forward = cross(pairs.collate(rows, np.zeros(len(rows), bool))).logits
        backward = cross(pairs.collate(rows, np.ones(len(rows), bool))).logits
    assert (forward - backward).abs().max() > 1e-3  # the network itself is not symmetric
    logits = cross.predict(pairs)
    assert logits.dtype == np.float64
    close(logits, (forward + backward) / 2)
    close(cross.predict(CrossPairs(swapped(frame), tokenizer, 64)), logits)


@pytest.mark.parametrize("batch_size", [1, 7])
def test_a_cross_prediction_does_not_depend_on_its_batch(
    cross, frame, tokenizer, batch_size, monkeypatch
):
    pairs = CrossPairs(frame, tokenizer, 64)
    expected = cross.predict(pairs)
    monkeypatch.setattr(cross_module, "_PAIRS", batch_size)
    close(cross.predict(pairs), expected)


def test_a_flag_reverses_its_own_row_only(frame, tokenizer):
    pairs = CrossPairs(frame, tokenizer, 64)
    rows, flags = np.array([4, 0, 7, 4]), np.array([True, False, True, False])
    tokens = pairs.collate(rows, flags).tokens
    expected = []
    for row, flag in zip(rows, flags, strict=True):
        ids = [
            tokenizer(frame[name][row], add_special_tokens=False)["input_ids"]
            for name in ("query1", "query2")
        ]
        first, second = ids[::-1] if flag else ids
        expected += [0, *first, 2, 2, *second, 2]
    assert tokens.ids.tolist() == expected


def test_segments_reach_the_encoder(pretrained):
    encoder, tokenizer = load_encoder("tiny", pretrained)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s>:0 $A:0 </s>:0 $B:1 </s>:1",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    pairs = CrossPairs(make_frame([("咳嗽", "发烧了")]), tokenizer, 64)
    for flipped, expected in ((False, [0] * 5 + [1] * 5), (True, [0] * 6 + [1] * 4)):
        batch = pairs.collate(np.array([0]), np.array([flipped]))
        assert batch.tokens.types.tolist() == expected
    tokens = batch.tokens
    plain = Tokens.pack([tokens.ids.tolist()])
    with torch.no_grad():
        assert not torch.allclose(encoder.eval()(tokens), encoder(plain))


def test_the_cross_head_reads_mean_and_cls(cross, frame, tokenizer):
    seen = []
    hook = cross.head.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))
    batch = all_rows(CrossPairs(frame, tokenizer, 64))
    with torch.no_grad():
        cross(batch)
        hidden = cross.encoder(batch.tokens)
    hook.remove()
    close(seen[0][:, :32], pool(hidden, batch.tokens, "mean"))
    close(seen[0][:, 32:], pool(hidden, batch.tokens, "cls"))


def test_every_cross_pair_is_a_group_of_its_own(frame, tokenizer):
    assert len(set(CrossPairs(frame, tokenizer, 64).groups)) == len(frame)


# Both


@pytest.mark.parametrize("kind", [Siamese, CrossEncoder])
def test_prediction_switches_dropout_off(kind, tiny, frame, tokenizer):
    arguments = ("mean", FEATURES[0]) if kind is Siamese else ()
    pairs = (SiamesePairs if kind is Siamese else CrossPairs)(frame, tokenizer, 64)
    model = kind(tiny[0], *arguments, dropout=0.5).train()
    batch = all_rows(pairs)
    assert not torch.equal(model(batch).logits, model(batch).logits)
    logits = model.predict(pairs)
    model.train()
    assert np.array_equal(model.predict(pairs), logits)


def test_long_questions_are_cut_at_max_length(tokenizer):
    long, short = "咳" * 50, "发烧"
    pairs = SiamesePairs(make_frame([(long, short), (short, long)]), tokenizer, 16)
    ids = {len(row): row for row in pairs.ids}
    space, cough = tokenizer.convert_tokens_to_ids(["▁", "咳"])
    assert ids.keys() == {16, 5}
    assert ids[16] == [0, space, *[cough] * 13, 2]
    assert ids[5] == tokenizer(short)["input_ids"]
    assert pairs.lengths.tolist() == [21, 21]


def test_a_long_pair_is_cut_where_it_is_longest(tokenizer):
    long, short = "咳" * 50, "发烧"
    pairs = CrossPairs(make_frame([(long, short), (long, long)]), tokenizer, 16)
    whole = tokenizer(short)["input_ids"]
    for flipped in (False, True):
        tokens = pairs.collate(np.array([0, 1]), np.full(2, flipped)).tokens
        assert tokens.lengths.tolist() == [32, 32]
        first = tokens.ids[:32].tolist()
        assert first[:5] == whole if flipped else first[-4:] == whole[1:]
        cough = tokenizer.convert_tokens_to_ids("咳")
        cut = tokens.ids[32:].tolist()
        middle = cut.index(2)
        assert abs(cut[:middle].count(cough) - cut[middle:].count(cough)) <= 1


# From settings to a model


def member(architecture, encoder="tiny", **settings):
    return MemberConfig(architecture=architecture, encoder=str(encoder), **settings)


@pytest.mark.parametrize(("architecture", "kind"), [("siamese", Siamese), ("cross", CrossEncoder)])
def test_a_member_becomes_its_architecture(architecture, kind, frame, pretrained):
    settings = member(architecture, pooling="max", features=["u*v", "|u-v|"], max_length=8)
    model, tokenizer = build_model(settings, pretrained, seed=1)
    assert type(model) is kind
    if kind is Siamese:
        assert model.pooling == "max" and model.features == ("u*v", "|u-v|")
    pairs = read_pairs_for(settings, frame, tokenizer)
    assert pairs.lengths.max() == 16  # 8 tokens a question
    logits = model.predict(pairs)
    assert logits.shape == (len(frame),) and np.isfinite(logits).all()


@pytest.mark.parametrize("architecture", ["siamese", "cross"])
def test_the_seed_draws_the_head_and_nothing_else(architecture, pretrained):
    first, again, other = (
        build_model(member(architecture), pretrained, seed)[0].state_dict() for seed in (1, 1, 2)
    )
    assert all(torch.equal(first[name], again[name]) for name in first)
    changed = {name.split(".")[0] for name in first if not torch.equal(first[name], other[name])}
    assert changed == {"head"}


def test_the_dropout_of_the_settings_reaches_encoder_and_head(pretrained):
    for architecture in ("siamese", "cross"):
        settings = member(architecture, training={"dropout": 0.25})
        model, _ = build_model(settings, pretrained, seed=1)
        for part in (model.encoder, model.head):
            rates = {module.p for module in part.modules() if isinstance(module, nn.Dropout)}
            assert rates == {0.25}


def test_a_sentence_encoder_serves_the_siamese_only(frame, tiny, pretrained, tmp_path):
    directory = tmp_path / "use"
    torch.manual_seed(0)
    directory.mkdir()
    save_tensors(NgramEncoder(len(tiny[1])).state_dict(), directory / "model.safetensors")
    write_json(directory / "config.json", {"model_type": MODEL_TYPE, "vocab_size": len(tiny[1])})
    shutil.copy(pretrained / "tiny" / "tokenizer.json", directory)
    settings = member("siamese", directory)
    model, tokenizer = build_model(settings, pretrained, seed=1)
    logits = model.predict(read_pairs_for(settings, frame, tokenizer))
    assert logits.shape == (len(frame),) and np.isfinite(logits).all()
    with pytest.raises(UserError, match="architecture=siamese"):
        build_model(member("cross", directory), pretrained, seed=1)


def test_an_unknown_architecture_names_the_known_ones(pretrained):
    with pytest.raises(UserError, match="no architecture 'triplet'.*siamese, cross"):
        build_model(member("triplet"), pretrained, seed=1)


def test_a_network_computes_in_its_own_precision(pretrained, frame):
    settings = member("siamese", training={"precision": "bf16"})
    model, tokenizer = build_model(settings, pretrained, seed=1)
    pairs = read_pairs_for(settings, frame, tokenizer)
    rounded = model.predict(pairs)
    model.precision = "fp32"
    exact = model.predict(pairs)
    assert (rounded != exact).any() and np.allclose(rounded, exact, atol=0.05)
    assert model(all_rows(pairs)).vectors.dtype == torch.float32
