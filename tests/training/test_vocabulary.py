"""Training on the word vectors that occur is training on all of them."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tiny_run import fold_files
from torch import nn

from src.config import MemberConfig
from src.data.pairs import read_pairs
from src.models.registry import build_model, read_pairs_for
from src.training.fold_model import train_fold_model
from src.training.loop import Conduct, LabelledPairs, train
from src.training.objective import Objective
from src.training.vocabulary import cut_vocabulary, occurring_ids


def table(padding: int | None = None) -> nn.Embedding:
    torch.manual_seed(0)
    return nn.Embedding(10, 3, padding_idx=padding)


def test_the_same_vectors_come_out_within_the_block_and_after_it():
    embedding, ids = table(), torch.tensor([[7, 2], [4, 7]])
    expected = embedding(ids)
    with cut_vocabulary(embedding, np.array([2, 4, 7])):
        assert embedding.weight.shape == (3, 3)
        assert torch.equal(embedding(ids), expected)
    assert torch.equal(embedding(ids), expected)


def test_what_is_learnt_is_put_back_and_nothing_else_is_touched():
    embedding = table()
    whole, before = embedding.weight, embedding.weight.detach().clone()
    with cut_vocabulary(embedding, np.array([2, 4])), torch.no_grad():
        embedding.weight += torch.tensor([[1.0], [2.0]])
    assert embedding.weight is whole
    before[2] += 1.0
    before[4] += 2.0
    assert torch.equal(whole, before)


def test_the_table_comes_back_also_when_the_block_raises():
    embedding = table(padding=1)
    whole = embedding.weight
    with pytest.raises(KeyboardInterrupt), cut_vocabulary(embedding, np.array([2, 4])):
        raise KeyboardInterrupt
    assert embedding.weight is whole and embedding.padding_idx == 1
    assert not embedding._forward_pre_hooks


def test_a_word_that_was_not_announced_is_an_error():
    embedding = table()
    with cut_vocabulary(embedding, np.array([2, 4])), pytest.raises(IndexError):
        embedding(torch.tensor([3]))


def test_the_padding_row_has_no_gradient():
    embedding = table(padding=4)
    with cut_vocabulary(embedding, np.array([2, 4])):
        embedding(torch.tensor([2, 4])).sum().backward()
        assert embedding.weight.grad.tolist() == [[1.0] * 3, [0.0] * 3]


@pytest.mark.parametrize("special", [[], [1, 2]])  # the n-gram encoder's tokenizer declares none
def test_special_tokens_always_occur(special: list[int]):
    tokenizer = SimpleNamespace(all_special_ids=special)
    ids = occurring_ids(tokenizer, np.array([7, 4]), np.array([4, 9]))
    assert ids.tolist() == [0, *special, 4, 7, 9]
    assert ids.dtype == np.int64  # an index


@pytest.mark.usefixtures("one_attempt")
@pytest.mark.parametrize("attack", ["none", "fgm", "pgd"])
@pytest.mark.parametrize("architecture", ["siamese", "cross"])
def test_training_gives_the_weights_of_the_whole_table(
    architecture: str, attack: str, sample: Path, pretrained: Path, tmp_path: Path
):
    frame = read_pairs(sample / "train.csv", labelled=True).frame
    training, valid = frame.iloc[:64], frame.iloc[64:96].reset_index(drop=True)
    member = MemberConfig(
        architecture=architecture,
        encoder="tiny",
        training={
            "epochs": 2,
            "batch_pairs": 16,
            "encoder_lr": 1e-4,
            "precision": "fp32",
            "dropout": 0.1,
            "weight_decay": 0.1,
            "adversarial": {"method": attack},
        },
    )
    folder = tmp_path / "cut"
    folder.mkdir()
    train_fold_model(member, fold_files(tmp_path, training, valid), 0.5, pretrained, None, folder)
    cut = load_file(folder / "model.safetensors")

    model, tokenizer = build_model(member, pretrained, member.seed)
    name, _ = next(iter(model.encoder.named_parameters(prefix="encoder")))
    untrained = model.encoder.word_embeddings.weight.detach().clone()
    read = [
        LabelledPairs(read_pairs_for(member, part, tokenizer), part["label"].to_numpy())
        for part in (training, valid)
    ]
    model.precision = "fp32"
    train(model, *read, member.training, Objective.of(member), Conduct("", member.seed, 0.5))
    whole = model.state_dict()
    assert cut.keys() == whole.keys() and cut[name].shape == whole[name].shape
    seen = np.union1d(*(part.pairs.vocabulary for part in read))
    unseen = np.setdiff1d(np.arange(len(untrained)), [0, *tokenizer.all_special_ids, *seen])
    assert len(unseen) > 0 and torch.equal(cut[name][unseen], untrained[unseen])
    assert not torch.equal(whole[name][unseen], untrained[unseen])  # decayed for nothing
    for key in whole:
        mine, theirs = cut[key], whole[key]
        if key == name:
            mine, theirs = mine[seen], theirs[seen]
        if not key.endswith("key.bias"):  # their gradient is rounding, which Adam makes large
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
