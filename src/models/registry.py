"""From a member's settings to a model and the pairs it reads."""

from pathlib import Path
from typing import Any

import pandas as pd
import torch
from transformers import PreTrainedTokenizerBase

from ..config import MemberConfig
from ..errors import UserError
from .cross_encoder import CrossEncoder, CrossPairs
from .encoder import load_encoder
from .siamese import Siamese, SiamesePairs


def build_model(
    member: MemberConfig, pretrained: Path, seed: int
) -> tuple[Siamese | CrossEncoder, PreTrainedTokenizerBase]:
    """The member's network with a pre-trained encoder and a fresh head drawn from `seed`.

    Raises:
        UserError: the encoder cannot be loaded, or does not fit the architecture.
    """
    torch.manual_seed(seed)
    dropout = member.training.dropout
    encoder, tokenizer = load_encoder(member.encoder, pretrained, dropout)
    longest = member.max_length * (2 if member.architecture == "cross" else 1)
    config = getattr(getattr(encoder, "backbone", None), "config", None)
    positions = getattr(config, "max_position_embeddings", longest)
    if 0 < positions < longest:  # XLNet, which has no limit, says -1
        raise UserError(
            f"max_length={member.max_length} makes sequences of up to {longest} tokens, but the "
            f"encoder '{member.encoder}' has {positions} positions: lower members.NAME.max_length."
        )
    if member.architecture == "siamese":
        return Siamese(encoder, member.pooling, member.features, dropout), tokenizer
    if not hasattr(encoder, "backbone"):
        raise UserError(
            f"The encoder '{member.encoder}' gives one vector a sentence and cannot read a pair: "
            "use it with architecture=siamese."
        )
    return CrossEncoder(encoder, dropout), tokenizer


def read_for(
    member: MemberConfig, frame: pd.DataFrame, tokenizer: PreTrainedTokenizerBase
) -> SiamesePairs | CrossPairs:
    """Tokenise a pair frame for the member's architecture."""
    kind: Any = SiamesePairs if member.architecture == "siamese" else CrossPairs
    return kind(frame, tokenizer, member.max_length)
