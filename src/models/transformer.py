"""Encoders of transformers."""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from ..errors import UserError
from .api import Family, TokenEncoder
from .dropout import replace_dropout
from .pooling import pool
from .published import first_line, read_config, weight_names
from .tokens import PACKED_ATTENTION, Tokens

# Bidirectional attention over the whole sequence, absolute positions: safe to pack. A causal or
# sliding-window model uses the same interface but would need a mask that packing does not give it.
_PACKED = {"bert", "roberta", "xlm-roberta", "albert", "electra", "ernie", "distilbert"}
_WITH_POOLER = {"bert", "roberta", "xlm-roberta", "albert", "ernie"}

transformers_logging.set_verbosity_error()
transformers_logging.disable_progress_bar()


class TransformerEncoder(TokenEncoder):
    """A transformers encoder that takes packed tokens.

    BERT and its relatives run without padding, through transformers' attention interface; all
    other encoders (XLNet, …) are fed a padded rectangle. The result is the same up to rounding.
    """

    def __init__(self, backbone: Any) -> None:  # any of transformers' encoders
        super().__init__()
        self.backbone: Any = backbone
        replace_dropout(backbone)
        self.packed = backbone.config.model_type in _PACKED
        if self.packed:
            backbone.set_attn_implementation(PACKED_ATTENTION)
        embeddings = getattr(backbone, "embeddings", None)
        # RoBERTa counts positions from the padding index + 1, BERT from 0.
        padding = getattr(embeddings, "padding_idx", None)
        self.first_position = 0 if padding is None else padding + 1
        self.hidden_size = backbone.config.hidden_size

    @property
    def word_embeddings(self) -> nn.Embedding:
        return self.backbone.get_input_embeddings()

    @property
    def layers(self) -> list[nn.Module]:
        stacks = (module for module in self.backbone.modules() if isinstance(module, nn.ModuleList))
        return list(max(stacks, key=len, default=[]))

    @property
    def positions(self) -> int | None:
        limit = getattr(self.backbone.config, "max_position_embeddings", None)
        if not limit or limit < 0:  # XLNet, which has no limit, says -1
            return None
        return limit - self.first_position  # RoBERTa's 514 carry 512 tokens

    def checkpoint_activations(self) -> None:
        self.backbone.activation_checkpointing_enable()

    def embed(self, tokens: Tokens, pooling: str) -> Tensor:
        return pool(self(tokens), tokens, pooling)

    def forward(self, tokens: Tokens) -> Tensor:
        """Token vectors [T, H] of the last layer."""
        types = {}
        if getattr(self.backbone.config, "type_vocab_size", 0) > 1:
            types["token_type_ids"] = tokens.types[None]
        if self.packed:
            return self.backbone(
                input_ids=tokens.ids[None],
                position_ids=tokens.positions[None] + self.first_position,
                tokens=tokens,
                **types,
            ).last_hidden_state[0]
        padded = {name: tokens.unfold(values[0]) for name, values in types.items()}
        padding = self.backbone.config.pad_token_id or 0
        ids = tokens.unfold(tokens.ids).masked_fill(~tokens.mask, padding)
        output = self.backbone(input_ids=ids, attention_mask=tokens.mask.long(), **padded)
        return tokens.fold(output.last_hidden_state)


def load(source: str, dropout: float) -> tuple[TransformerEncoder, PreTrainedTokenizerBase]:
    """Load encoder and tokenizer from a model directory with safetensors weights.

    Raises:
        UserError: damaged, weights that do not fit the configuration, or a tokenizer that does not
            fit the vocabulary.
    """
    directory = Path(source)
    try:
        config = read_config(directory, weight_names(directory))
        tokenizer = AutoTokenizer.from_pretrained(source, config=config, trust_remote_code=False)
        config.update(_dropout(config, dropout))
        arguments = {"add_pooling_layer": False} if config.model_type in _WITH_POOLER else {}
        backbone, report = AutoModel.from_pretrained(
            source,
            config=config,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # _check_weights says which, transformers does not
            **arguments,
        )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise UserError(
            f"The encoder '{source}' cannot be loaded: {first_line(error)}\n"
            "It needs config.json, model.safetensors and the tokenizer's files of one checkpoint. "
            "A file that was not wholly downloaded has to be removed and fetched again."
        ) from error
    _check_weights(source, config, report)
    # Without the tokenizer's files transformers invents one that knows the special tokens only.
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise UserError(
            f"The encoder '{source}' has no tokenizer. Copy the tokenizer files (tokenizer.json or "
            "vocab.txt) of the same checkpoint into the directory."
        )
    if len(tokenizer) > config.vocab_size:
        raise UserError(
            f"The tokenizer of '{source}' has {len(tokenizer)} entries, the model's vocabulary "
            f"{config.vocab_size}: they do not belong together. Copy the tokenizer files of the "
            "same checkpoint into the directory."
        )
    return TransformerEncoder(backbone), tokenizer


def _dropout(config: object, dropout: float) -> dict[str, float]:
    names = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout")
    return {name: dropout for name in names if hasattr(config, name)}


def _check_weights(source: str, config: Any, report: dict) -> None:
    """A model with random layers trains quietly and badly, so nothing may be missing."""
    for key, stored, expected in sorted(report["mismatched_keys"]):
        raise UserError(
            f"The weights of '{source}' do not fit its config.json: {key} is {tuple(stored)} in "
            f"the file, {tuple(expected)} by the configuration. Take both from the same checkpoint."
        )
    missing = sorted(report["missing_keys"])
    if not missing:
        return
    remedy = "Take config.json and the weights from the same checkpoint."
    raise UserError(
        f"The weights of '{source}' lack {len(missing)} tensors that its config.json asks for "
        f"(first: {missing[0]}). {remedy}"
    )


FAMILY = Family(load, gives_tokens=True)
