"""What turns vectors into a logit."""

import torch
from torch import Tensor, nn


class Head(nn.Sequential):
    """A layer with tanh, then one logit [N, 1]; always in fp32, whatever the encoder computes in.

    The last layers are cheap, and a logit of half precision has three digits.
    """

    def __init__(self, inputs: int, hidden: int, dropout: float) -> None:
        super().__init__(
            nn.Dropout(dropout),
            nn.Linear(inputs, hidden),
            nn.Tanh(),
            nn.Dropout(dropout),
            nn.Linear(hidden, 1),
        )

    def forward(self, vectors: Tensor) -> Tensor:
        with torch.autocast(vectors.device.type, enabled=False):
            return super().forward(vectors.float())
