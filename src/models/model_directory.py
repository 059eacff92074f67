"""Write an ordinary model directory, as transformers reads it."""

from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from ..files import atomic_path, save_tensors, write_json
from .unigram import Vocabulary


def write_model_directory(
    target: Path,
    config: dict,
    state: dict[str, np.ndarray],
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
) -> None:
    """Write weights, tokenizer and, last, the config: its presence marks a whole directory."""
    target.mkdir(parents=True, exist_ok=True)
    tensors = {name: torch.from_numpy(values.copy()) for name, values in state.items()}
    with atomic_path(target / "model.safetensors") as temporary:
        save_tensors(tensors, temporary)
    with atomic_path(target / "tokenizer.json") as temporary:
        tokenizer.save(str(temporary))
    pieces = vocabulary.pieces
    write_json(
        target / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": config["max_position_embeddings"],
            "cls_token": pieces[vocabulary.bos],
            "sep_token": pieces[vocabulary.eos],
            "pad_token": pieces[vocabulary.pad],
            "unk_token": pieces[vocabulary.unk],
        },
    )
    write_json(target / "config.json", config)
