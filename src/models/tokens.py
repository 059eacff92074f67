"""Sequences without padding: a batch is one long row of tokens.

Questions have 13 tokens on average and 36 at most, so a rectangular batch of question groups is
nearly half padding. Here the tokens of a batch stand one after another, and every part that works
token by token (embeddings, linear layers, layer norms, activations) never sees a pad. Only
attention needs to know where a sequence ends; there the row is unfolded to a rectangle and folded
back, which costs little because attention over short questions is cheap.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from transformers import AttentionInterface

from .dropout import dropout as random_dropout

PACKED_ATTENTION = "packed_sdpa"


@dataclass(frozen=True)
class Tokens:
    """B sequences of T tokens in all.

    Attributes:
        ids: LongTensor[T], token ids.
        types: LongTensor[T], segment of a pair (0 or 1) where the encoder knows segments.
        positions: LongTensor[T], 0, 1, 2, … within each sequence.
        sequence: LongTensor[T], which sequence a token belongs to, ascending.
        lengths: LongTensor[B].
        width: the longest sequence's length.
    """

    ids: Tensor
    types: Tensor
    positions: Tensor
    sequence: Tensor
    lengths: Tensor
    width: int

    @classmethod
    def pack(
        cls, ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]] | None = None
    ) -> "Tokens":
        """Pack B non-empty lists of token ids (and their segment ids, all 0 by default)."""
        lengths = np.fromiter(map(len, ids), np.int64, len(ids))
        ends = np.cumsum(lengths)
        total = int(ends[-1])
        sequence = np.repeat(np.arange(len(ids)), lengths)
        flat = np.fromiter((i for row in ids for i in row), np.int64, total)
        segment = np.zeros(total, np.int64)
        if types is not None:
            segment = np.fromiter((i for row in types for i in row), np.int64, total)
        positions = np.arange(total) - np.repeat(ends - lengths, lengths)
        tensors = map(torch.from_numpy, (flat, segment, positions, sequence, lengths))
        return cls(*tensors, width=int(lengths.max()))  # type: ignore[misc, arg-type]  # in order

    def to(self, device: torch.device) -> "Tokens":
        """The same tokens on another device."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        moved = {
            name: value.to(device, non_blocking=True)
            for name, value in values.items()
            if isinstance(value, Tensor)
        }
        return replace(self, **moved)  # type: ignore[arg-type]  # tensors in the place of tensors

    # Once a batch, not once a layer.
    @cached_property
    def slots(self) -> Tensor:
        """LongTensor[T]: where each token stands in the rectangle [B · width]."""
        return self.sequence * self.width + self.positions

    @cached_property
    def mask(self) -> Tensor:
        """BoolTensor[B, width]: True at tokens, False at pads."""
        return torch.arange(self.width, device=self.ids.device) < self.lengths[:, None]

    def unfold(self, packed: Tensor) -> Tensor:
        """[T, …] → [B, width, …], zeros at pads."""
        rectangle = packed.new_zeros(len(self.lengths) * self.width, *packed.shape[1:])
        rectangle = rectangle.index_copy(0, self.slots, packed)
        return rectangle.view(len(self.lengths), self.width, *packed.shape[1:])

    def fold(self, rectangle: Tensor) -> Tensor:
        """[B, width, …] → [T, …]."""
        return rectangle.flatten(0, 1).index_select(0, self.slots)


def packed_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    tokens: Tokens,
    **options: Any,
) -> tuple[Tensor, None]:
    """transformers' attention interface over one packed row.

    `query`, `key`, `value` are [1, heads, T, size]; the result is [1, T, heads, size]. No token
    sees another sequence, as in a padded batch with its mask. `options` hold the factor `scaling`
    and the probability `dropout`.
    """
    assert attention_mask is None
    scaling, dropout = options["scaling"], options.get("dropout", 0.0)
    stacked = torch.stack((query[0], key[0], value[0])).permute(2, 0, 1, 3)  # [T, 3, heads, size]
    query, key, value = tokens.unfold(stacked).permute(2, 0, 3, 1, 4)  # each [B, heads, W, size]
    mask = tokens.mask[:, None, None, :]
    if query.is_cpu:
        # For sequences this short the fused CPU kernel takes 6 times as long as two products.
        scores = (query @ key.transpose(2, 3) * scaling).masked_fill(~mask, float("-inf"))
        mixed = random_dropout(scores.softmax(-1), dropout, module.training) @ value
    else:
        mixed = functional.scaled_dot_product_attention(
            query, key, value, mask, dropout_p=dropout, scale=scaling
        )
    return tokens.fold(mixed.transpose(1, 2))[None], None


AttentionInterface.register(PACKED_ATTENTION, packed_attention)
