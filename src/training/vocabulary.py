"""Train only the word vectors that occur.

The questions of a fold use a tenth of the encoder's vocabulary. AdamW, gradient clipping and the
checkpoint would go over the whole table all the same, at every step.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

from ..models.api import Tokenizer


def occurring_ids(tokenizer: Tokenizer, *vocabularies: np.ndarray) -> np.ndarray:
    """int64[R], ascending: the token ids of `vocabularies`, and the tokenizer's special ones."""
    # 0 is what stands at pads where the tokenizer names no padding token.
    special = np.array([0, *tokenizer.all_special_ids])
    return np.unique(np.concatenate([special, *vocabularies]))


@contextmanager
def cut_vocabulary(embedding: nn.Embedding, occurring: np.ndarray) -> Iterator[None]:
    """Within the block `embedding` holds only the rows `occurring`; afterwards all, those updated.

    Rows that occur are trained as in the whole table. The others keep their pre-trained values,
    where weight decay would have shrunk them for nothing. An id that is not in `occurring` is an
    error within the block.

    Args:
        occurring: int[R], token ids, ascending.
    """
    whole, padding = embedding.weight, embedding.padding_idx
    rows = torch.from_numpy(occurring).to(whole.device)
    place = torch.full((len(whole),), -1, dtype=torch.long, device=whole.device)
    place[rows] = torch.arange(len(rows), device=whole.device)
    embedding.weight = nn.Parameter(whole.detach()[rows], whole.requires_grad)
    if padding is not None:
        embedding.padding_idx = int(place[padding]) if place[padding] >= 0 else None
    hook = embedding.register_forward_pre_hook(lambda _, arguments: (place[arguments[0]],))
    try:
        yield
    finally:
        hook.remove()
        with torch.no_grad():
            whole[rows] = embedding.weight.detach()
        embedding.weight, embedding.padding_idx = whole, padding
