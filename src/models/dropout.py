"""Dropout whose random numbers are cheap on a CPU."""

import torch
from torch import Tensor, nn
from torch.nn import functional


def dropout(values: Tensor, probability: float, training: bool) -> Tensor:
    """Inverted dropout (Srivastava et al. 2014).

    On a CPU torch draws one Bernoulli number an element, which takes an eighth of a training step
    here. One random byte an element is enough: the probability is rounded to a 256th.
    """
    dropped = round(probability * 256)
    if not training or dropped in (0, 256) or not values.is_cpu:
        return functional.dropout(values, probability, training)
    words = torch.empty((values.numel() + 7) // 8, dtype=torch.int64)
    bytes_ = words.random_(-(2**63), None).view(torch.uint8)[: values.numel()]
    keep = (bytes_ >= dropped).view(values.shape).to(values.dtype)
    return values * keep.mul_(256 / (256 - dropped))


class Dropout(nn.Dropout):
    """`dropout` as a layer."""

    def forward(self, values: Tensor) -> Tensor:
        """Values of any shape."""
        return dropout(values, self.p, self.training)


def replace_dropout(module: nn.Module) -> None:
    """Put `Dropout` in the place of every nn.Dropout below `module`."""
    for name, child in module.named_children():
        if type(child) is nn.Dropout:
            setattr(module, name, Dropout(child.p))
        else:
            replace_dropout(child)
