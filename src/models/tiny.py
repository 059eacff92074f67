"""A random two-layer encoder, made on the spot: the whole pipeline in seconds, for tests."""

from pathlib import Path

import torch
from transformers import BertConfig, BertModel

from .model_directory import write_model_directory
from .unigram import Vocabulary, build_tokenizer

_SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]


def make(target: Path, layers: int = 2, hidden: int = 32) -> None:
    """Write a model directory whose weights are random (seeded) and whose pieces are characters."""
    characters = [chr(code) for code in range(0x21, 0x7F)]
    # GB 2312: the characters of everyday Chinese. Rarer ones are unknown to this encoder.
    han = map(chr, range(0x4E00, 0x9FA6))
    characters += [character for character in han if character.encode("gb2312", "ignore")]
    pieces = [*_SPECIALS, "▁", *characters]
    scores = [0.0] * len(_SPECIALS) + [-1.0] * (len(pieces) - len(_SPECIALS))
    vocabulary = Vocabulary(pieces, scores, bos=0, eos=2, pad=1, unk=3)
    config = BertConfig(
        vocab_size=len(pieces),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=2 * hidden,
        max_position_embeddings=128,
        pad_token_id=vocabulary.pad,
        bos_token_id=vocabulary.bos,
        eos_token_id=vocabulary.eos,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BertModel(config, add_pooling_layer=False)
    state = {name: values.numpy() for name, values in model.state_dict().items()}
    content = config.to_dict() | {"architectures": ["BertModel"]}
    write_model_directory(target, content, state, build_tokenizer(vocabulary), vocabulary)
