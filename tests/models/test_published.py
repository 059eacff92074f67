"""Checkpoints as they are published: .bin files, old names, wrong configurations, a hub."""

import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tiny_run import fold_files
from torch.testing import assert_close
from transformers import BertConfig, BertForPreTraining, RobertaConfig, RobertaModel

from src.config import MemberConfig
from src.data.pairs import read_pairs
from src.errors import UserError
from src.files import sha256
from src.models import published
from src.models.registry import load_encoder
from src.models.tokens import Tokens
from src.models.transformer import TransformerEncoder
from src.training.fold_model import train_fold_model

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"咳嗽怎么办发烧了吃什药abc"]
SHAPE = {
    "vocab_size": len(WORDS) + 3,  # a vocabulary larger than the tokenizer, as of several models
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 40,
}
# What the Chinese checkpoints' config.json has besides.
OLD_KEYS = {"directionality": "bidi", "pooler_fc_size": 768, "pooler_type": "first_token_transform"}


@pytest.fixture
def model() -> BertForPreTraining:
    torch.manual_seed(0)
    return BertForPreTraining(BertConfig(**SHAPE)).eval()


@pytest.fixture
def directory(tmp_path: Path, model: BertForPreTraining) -> Path:
    """In the shape of the Chinese RoBERTa-wwm: heads, a prefix, a .bin, vocab.txt, old keys."""
    folder = tmp_path / "chinese-roberta-wwm"
    folder.mkdir()
    write_config(folder, **OLD_KEYS)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder


def write_config(folder: Path, **changes) -> None:
    content = {"architectures": ["BertForMaskedLM"], "model_type": "bert", **SHAPE, **changes}
    kept = {key: value for key, value in content.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(kept))


def assert_loads(source: Path, pretrained: Path, model: BertForPreTraining):
    """The encoder gives what `model` gives, and the tokenizer knows its characters."""
    encoder, tokenizer = load_encoder(str(source), pretrained)
    ids = tokenizer("咳嗽怎么办")["input_ids"]
    assert ids == [2, 5, 6, 7, 8, 9, 3]
    with torch.no_grad():
        expected = model.bert(input_ids=torch.tensor([ids])).last_hidden_state[0]
        assert_close(encoder.eval()(Tokens.pack([ids])), expected, atol=2e-5, rtol=0)
    return encoder, tokenizer


def test_a_bin_is_converted_once(directory: Path, model, tmp_path: Path) -> None:
    assert_loads(directory, tmp_path / "made", model)
    (copy,) = (tmp_path / "made").glob("*/model.safetensors")
    origin = published.origin(copy.parent)
    assert origin["from"] == {"pytorch_model.bin": sha256(directory / "pytorch_model.bin")}
    assert origin["weights"] == {"model.safetensors": sha256(copy)}
    names = published.weight_names(copy.parent)
    assert not [name for name in names if name.startswith(("bert.", "cls."))]
    before = copy.stat().st_mtime_ns
    assert_loads(directory, tmp_path / "made", model)
    assert copy.stat().st_mtime_ns == before
    with torch.no_grad():
        model.bert.encoder.layer[0].output.dense.bias += 1
    torch.save(model.state_dict(), directory / "pytorch_model.bin")
    assert_loads(directory, tmp_path / "made", model)  # another content is another encoder
    assert len(list((tmp_path / "made").glob("*/model.safetensors"))) == 2


def old_names(state: dict) -> dict:
    names = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    for new, old in names.items():
        state = {name.replace(new, old): tensor for name, tensor in state.items()}
    return state


def in_parallel(state: dict) -> dict:
    return {f"module.{name}": tensor for name, tensor in state.items()}


def without_prefix(state: dict) -> dict:
    return {name.removeprefix("bert."): tensor for name, tensor in state.items()}


def in_a_checkpoint(state: dict) -> dict:
    return {"state_dict": state, "epoch": 3}


def sharing_memory(state: dict) -> dict:
    table = torch.cat([state["bert.embeddings.word_embeddings.weight"]] * 2)
    return state | {"bert.embeddings.word_embeddings.weight": table[: SHAPE["vocab_size"]]}


@pytest.mark.parametrize(
    "change", [old_names, in_parallel, without_prefix, in_a_checkpoint, sharing_memory]
)
@pytest.mark.parametrize("zipped", [True, False])
def test_every_way_to_save_a_checkpoint_is_read(directory, model, tmp_path, change, zipped) -> None:
    content = change(model.state_dict())
    file = directory / "pytorch_model.bin"
    torch.save(content, file, _use_new_zipfile_serialization=zipped)
    assert_loads(directory, tmp_path / "made", model)


def test_shards_are_joined(directory: Path, model, tmp_path: Path) -> None:
    state = model.state_dict()
    (directory / "pytorch_model.bin").unlink()
    parts = {"pytorch_model-00001-of-00002.bin": {}, "pytorch_model-00002-of-00002.bin": {}}
    index = {}
    for number, (name, tensor) in enumerate(state.items()):
        file = list(parts)[number % 2]
        parts[file][name] = tensor
        index[name] = file
    for file, part in parts.items():
        torch.save(part, directory / file)
    index_file = directory / "pytorch_model.bin.index.json"
    index_file.write_text(json.dumps({"weight_map": index}))
    assert_loads(directory, tmp_path / "made", model)
    (directory / "pytorch_model-00002-of-00002.bin").unlink()
    assert "which is not there" in refusal(directory, tmp_path / "again")


# Configurations.


@pytest.mark.parametrize("declared", [None, "roberta"])
@pytest.mark.parametrize("safe", [True, False])
def test_bert_under_another_name_is_loaded_as_bert(
    directory, model, tmp_path, declared, safe, capsys
) -> None:
    if safe:
        (directory / "pytorch_model.bin").unlink()
        model.save_pretrained(directory)
    write_config(directory, model_type=declared, **OLD_KEYS)
    encoder, tokenizer = assert_loads(directory, tmp_path / "made", model)
    assert type(encoder.backbone).__name__ == "BertModel"
    assert "loaded as bert" in capsys.readouterr().err
    pair = tokenizer("咳嗽", "发烧")
    assert pair["token_type_ids"] == [0, 0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(("lower", "ids"), [(True, [2, 19, 20, 3]), (False, [2, 1, 3])])
def test_letter_case_is_as_the_tokenizer_says(directory, tmp_path, lower, ids) -> None:
    settings = directory / "tokenizer_config.json"
    settings.write_text(json.dumps({"do_lower_case": lower}))
    _, tokenizer = load_encoder(str(directory), tmp_path / "made")
    (directory / "vocab.txt").write_text("\n".join([*WORDS[:19], "a", "##b"]) + "\n")
    _, tokenizer = load_encoder(str(directory), tmp_path / "other")
    assert tokenizer("AB")["input_ids"] == ids


def test_robertas_positions_carry_two_tokens_less(tmp_path: Path) -> None:
    folder = tmp_path / "roberta"
    RobertaModel(RobertaConfig(**SHAPE | {"max_position_embeddings": 34})).save_pretrained(folder)
    packed = TransformerEncoder(RobertaModel.from_pretrained(folder))
    assert packed.positions == 32
    packed(Tokens.pack([list(range(5, 15)) * 3 + [5, 6]]))
    with pytest.raises(IndexError):
        packed(Tokens.pack([list(range(5, 15)) * 3 + [5, 6, 7]]))


# What cannot be loaded is refused, and nothing is left behind.


def refusal(source: Path, pretrained: Path) -> str:
    with pytest.raises(UserError) as caught:
        load_encoder(str(source), pretrained)
    assert not [path for path in pretrained.glob("*") if path.is_dir()]
    return str(caught.value)


class Trap:
    """Unpickling it runs a command."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_pickle_that_would_run_something_is_refused(directory, tmp_path, zipped) -> None:
    marker, file = tmp_path / "executed", directory / "pytorch_model.bin"
    content = {"weight": torch.zeros(2), "trap": Trap(marker)}
    torch.save(content, file, _use_new_zipfile_serialization=zipped)
    torch.load(file, weights_only=False)
    assert marker.exists(), "the trap works"
    marker.unlink()
    message = refusal(directory, tmp_path / "made")
    assert not marker.exists()
    assert "is refused" in message and "system" in message and str(file) in message


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_bin_is_named(directory, model, tmp_path, zipped, share) -> None:
    file = directory / "pytorch_model.bin"
    torch.save(model.state_dict(), file, _use_new_zipfile_serialization=zipped)
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    message = refusal(directory, tmp_path / "made")
    assert str(file) in message and "download it again" in message


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("bert_model.ckpt.index", "TensorFlow"),
        ("tf_model.h5", "TensorFlow"),
        ("flax_model.msgpack", "Flax"),
        ("model_state.pdparams", "Paddle"),
    ],
)
def test_weights_of_others_are_named(directory, tmp_path, file, kind) -> None:
    (directory / "pytorch_model.bin").rename(directory / file)
    assert f"weights of {kind} only" in refusal(directory, tmp_path / "made")


def test_no_config_no_weights_wrong_vocabulary(directory: Path, tmp_path: Path) -> None:
    (directory / "vocab.txt").write_text("\n".join([*WORDS, *"一二三四五六"]))
    with pytest.raises(UserError, match="do not belong together"):
        load_encoder(str(directory), tmp_path / "made")
    (directory / "pytorch_model.bin").unlink()
    assert "it has no weights" in refusal(directory, tmp_path / "other")
    (directory / "config.json").unlink()
    assert "no config.json" in refusal(directory, tmp_path / "other")


def test_a_full_disk_leaves_no_half_directory(directory, model, tmp_path, monkeypatch) -> None:
    def full(tensors: dict, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    made = tmp_path / "made"
    with monkeypatch.context() as patch:
        patch.setattr(published, "save_tensors", full)
        with pytest.raises(OSError, match="No space"):
            load_encoder(str(directory), made)
    assert not [path for path in made.glob("*") if path.is_dir()]
    assert_loads(directory, made, model)


def test_the_embedded_encoder_published_as_the_chinese_ones_trains_the_same(
    tmp_path: Path, pretrained: Path, sample: Path
) -> None:
    """A .bin with a prefix and heads, no model_type: the same seed gives the same logits."""
    load_encoder("e5-small-zh", pretrained)
    embedded, published_as = pretrained / "e5-small-zh", tmp_path / "e5"
    shutil.copytree(embedded, published_as)
    state = {f"bert.{name}": t for name, t in load_file(embedded / "model.safetensors").items()}
    (published_as / "model.safetensors").unlink()
    state["cls.predictions.bias"] = torch.zeros(5)
    torch.save(state, published_as / "pytorch_model.bin")
    content = json.loads((published_as / "config.json").read_text())
    del content["model_type"]
    (published_as / "config.json").write_text(json.dumps(content | OLD_KEYS))
    pairs = read_pairs(sample / "train.csv", labelled=True).frame
    logits = []
    for name in ("e5-small-zh", str(published_as)):
        training = {"epochs": 1, "batch_pairs": 4, "precision": "fp32"}
        member = MemberConfig(architecture="siamese", encoder=name, training=training)
        folder = tmp_path / f"trained{len(logits)}"
        folder.mkdir()
        files = fold_files(folder, pairs.iloc[:12], pairs.iloc[12:20].reset_index(drop=True))
        train_fold_model(member, files, 0.0, pretrained, None, folder)
        logits.append(np.load(folder / "oof.npy"))
    assert (logits[0] == logits[1]).all()
