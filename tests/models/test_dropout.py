"""Dropout from random bytes is dropout: share, scale, gradient, seed, and nothing in evaluation."""

import pytest
import torch
from torch import nn

from src.models.dropout import Dropout, dropout, replace_dropout


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_share_and_mean(probability):
    torch.manual_seed(0)
    values = dropout(torch.ones(1000, 999), probability, training=True)
    assert (values == 0).float().mean().item() == pytest.approx(probability, abs=0.004)
    assert values.mean().item() == pytest.approx(1.0, abs=0.01)
    assert len(values.unique()) == 2


def test_every_bit_position_drops_alike():
    """Eight elements share one random word; the sign bit must not favour any of them."""
    torch.manual_seed(0)
    dropped = (dropout(torch.ones(200_000, 8), 0.5, training=True) == 0).float().mean(0)
    assert dropped.sub(0.5).abs().max() < 0.01


def test_the_gradient_passes_where_the_value_does():
    values = torch.ones(100, requires_grad=True)
    out = dropout(values, 0.5, training=True)
    out.sum().backward()
    assert torch.equal(values.grad, out.detach())


def test_the_seed_decides_and_evaluation_keeps_everything():
    values = torch.rand(50, dtype=torch.bfloat16)
    draws = []
    for _ in range(2):
        torch.manual_seed(3)
        draws.append(dropout(values, 0.3, training=True))
    assert torch.equal(*draws) and draws[0].dtype == values.dtype
    assert torch.equal(dropout(values, 0.3, training=False), values)
    assert torch.equal(dropout(values, 0.0, training=True), values)
    assert (dropout(values, 1.0, training=True) == 0).all()


def test_all_layers_are_replaced():
    network = nn.Sequential(nn.Dropout(0.2), nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.3)))
    replace_dropout(network)
    layers = [layer for layer in network.modules() if isinstance(layer, Dropout | nn.Dropout)]
    assert [(type(layer), layer.p) for layer in layers] == [(Dropout, 0.2), (Dropout, 0.3)]
