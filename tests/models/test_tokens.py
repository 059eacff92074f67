"""Packed rows of tokens: layout, attention that stays inside a sequence, pooling."""

import pytest
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from torch import nn

from src.models.pooling import pool
from src.models.tokens import Tokens, packed_attention

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]

id_lists = st.lists(st.lists(st.integers(0, 999), min_size=1, max_size=12), min_size=1, max_size=9)


def attend(tokens, query, key, value, scaling=0.5, dropout=0.0, training=False):
    module = nn.Identity().train(training)
    mixed, weights = packed_attention(
        module, query, key, value, None, dropout=dropout, scaling=scaling, tokens=tokens
    )
    assert weights is None
    return mixed


def random_heads(tokens, heads=3, size=4, device="cpu"):
    generator = torch.Generator().manual_seed(len(tokens.ids))
    shape = (3, 1, heads, len(tokens.ids), size)
    return torch.randn(shape, generator=generator).to(device).unbind()


def test_a_packed_batch_by_hand():
    tokens = Tokens.pack([[5, 6], [7], [8, 9, 4]])
    assert tokens.ids.tolist() == [5, 6, 7, 8, 9, 4]
    assert tokens.types.tolist() == [0, 0, 0, 0, 0, 0]
    assert tokens.positions.tolist() == [0, 1, 0, 0, 1, 2]
    assert tokens.sequence.tolist() == [0, 0, 1, 2, 2, 2]
    assert tokens.lengths.tolist() == [2, 1, 3]
    assert tokens.width == 3
    assert tokens.slots.tolist() == [0, 1, 3, 6, 7, 8]
    assert tokens.mask.tolist() == [[True, True, False], [True, False, False], [True] * 3]
    rectangle = tokens.unfold(tokens.ids)
    assert rectangle.tolist() == [[5, 6, 0], [7, 0, 0], [8, 9, 4]]


def test_mask_and_slots_are_made_once_a_batch_and_anew_on_another_device():
    tokens = Tokens.pack([[5, 6], [7]])
    assert tokens.mask is tokens.mask and tokens.slots is tokens.slots
    moved = tokens.to(torch.device("meta"))
    assert moved.mask.device.type == moved.slots.device.type == "meta"
    assert moved.width == tokens.width


def test_segments_keep_their_places():
    tokens = Tokens.pack([[5, 6], [7, 8, 9]], [[0, 1], [0, 0, 1]])
    assert tokens.types.tolist() == [0, 1, 0, 0, 1]


@given(id_lists, st.lists(st.integers(1, 3), max_size=2))
def test_folding_undoes_unfolding_and_pads_are_zero(ids, trailing):
    tokens = Tokens.pack(ids)
    packed = torch.rand(len(tokens.ids), *trailing) + 1
    rectangle = tokens.unfold(packed)
    assert rectangle.shape == (len(ids), max(map(len, ids)), *trailing)
    assert torch.equal(tokens.fold(rectangle), packed)
    for row, values in zip(ids, rectangle, strict=True):
        assert (values[: len(row)] > 0).all() and (values[len(row) :] == 0).all()


@pytest.mark.parametrize("device", DEVICES)
def test_tokens_move_to_a_device(device):
    tokens = Tokens.pack([[5, 6], [7]], [[0, 1], [1]])
    moved = tokens.to(torch.device(device))
    for name in ("ids", "types", "positions", "sequence", "lengths", "slots", "mask"):
        assert getattr(moved, name).device.type == device
        assert torch.equal(getattr(moved, name).cpu(), getattr(tokens, name))
    assert moved.width == tokens.width


@pytest.mark.parametrize("device", DEVICES)
@given(ids=id_lists)
@examples(max_examples=40)
def test_attention_is_that_of_each_sequence_alone(device, ids):
    tokens = Tokens.pack(ids).to(torch.device(device))
    query, key, value = random_heads(tokens, device=device)
    mixed = attend(tokens, query, key, value, scaling=0.7)
    start = 0
    for row in ids:
        own = slice(start, start + len(row))
        weights = (query[0, :, own] @ key[0, :, own].transpose(1, 2) * 0.7).softmax(-1)
        expected = (weights @ value[0, :, own]).transpose(0, 1)  # [length, heads, size]
        torch.testing.assert_close(mixed[0, own], expected, atol=1e-5, rtol=0)
        start += len(row)


def test_no_gradient_crosses_from_one_sequence_to_another():
    tokens = Tokens.pack([[1, 2, 3], [4, 5]])
    heads = [part.clone().requires_grad_() for part in random_heads(tokens)]
    attend(tokens, *heads)[0, 3:].sum().backward()
    for part in heads:
        assert (part.grad[0, :, :3] == 0).all() and part.grad.isfinite().all()
    assert (heads[2].grad[0, :, 3:] != 0).any()


def test_attention_drops_out_in_training_only():
    tokens = Tokens.pack([[1, 2, 3], [4, 5]])
    heads = random_heads(tokens)
    calm = attend(tokens, *heads)
    assert torch.equal(attend(tokens, *heads, dropout=0.5), calm)
    assert (attend(tokens, *heads, dropout=1.0, training=True) == 0).all()


def test_pooling_by_hand():
    tokens = Tokens.pack([[1, 2], [3], [4, 5, 6]])
    hidden = torch.tensor(
        [[1.0, -8.0], [3.0, -2.0], [-5.0, 7.0], [-1.0, 0.0], [-6.0, 3.0], [-2.0, 6.0]]
    )
    assert pool(hidden, tokens, "cls").tolist() == [[1, -8], [-5, 7], [-1, 0]]
    assert pool(hidden, tokens, "mean").tolist() == [[2, -5], [-5, 7], [-3, 3]]
    assert pool(hidden, tokens, "max").tolist() == [[3, -2], [-5, 7], [-1, 6]]


@pytest.mark.parametrize("how", ["cls", "mean", "max"])
def test_pooling_of_half_precision_is_done_in_float32(how):
    # In bfloat16 the sum would stand still at 256: 256 + 1 rounds to 256.
    tokens = Tokens.pack([[0] * 400])
    pooled = pool(torch.ones(400, 2, dtype=torch.bfloat16), tokens, how)
    assert pooled.dtype == torch.float32 and pooled.tolist() == [[1, 1]]


def test_an_unknown_pooling_is_refused():
    with pytest.raises(ValueError, match="median"):
        pool(torch.ones(1, 2), Tokens.pack([[1]]), "median")
