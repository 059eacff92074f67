"""From token vectors to one vector a sequence (Reimers & Gurevych 2019, section 3)."""

import torch
from torch import Tensor

from .tokens import Tokens


def pool(hidden: Tensor, tokens: Tokens, how: str) -> Tensor:
    """Pool packed token vectors [T, H] to [B, H] in float32.

    `how` is "mean" (over all tokens, the specials included, as sentence-transformers does),
    "cls" (the first token) or "max" (over time).
    """
    hidden = hidden.float()
    count = len(tokens.lengths)
    if how == "cls":
        return hidden[tokens.positions == 0]
    if how == "mean":
        total = hidden.new_zeros(count, hidden.shape[1]).index_add(0, tokens.sequence, hidden)
        return total / tokens.lengths[:, None]
    if how == "max":
        index = tokens.sequence[:, None].expand_as(hidden)
        lowest = hidden.new_full((count, hidden.shape[1]), torch.finfo(hidden.dtype).min)
        return lowest.scatter_reduce(0, index, hidden, "amax")
    raise ValueError(f"unknown pooling {how!r}")
