"""Which name stands for what: architectures, encoders that are made on first use, families.

A new architecture or encoder is a file of its own and a line here.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import torch
from filelock import FileLock

from ..config import MemberConfig
from ..errors import UserError
from ..fingerprint import Registry
from . import cross_encoder, e5_wheel, ngram, siamese, tiny, transformer, use_wheel
from .api import Architecture, Encoder, Family, PairModel, Pairs, Tokenizer
from .published import local_directory

ARCHITECTURES: Registry[str, Architecture] = {
    "siamese": siamese.ARCHITECTURE,
    "cross": cross_encoder.ARCHITECTURE,
}
# By the model_type of config.json; all others are transformers'.
FAMILIES: Registry[str, Family] = {
    "transformers": transformer.FAMILY,
    ngram.MODEL_TYPE: ngram.FAMILY,
}
# Encoders that are made on first use: what writes their model directory, and their family.
MAKERS: Registry[str, tuple[Callable[[Path], None], Family]] = {
    "e5-small-zh": (e5_wheel.make, transformer.FAMILY),
    "use-v3-zh": (use_wheel.make, ngram.FAMILY),
    "tiny": (tiny.make, transformer.FAMILY),
}


def architecture(name: str) -> Architecture:
    """The architecture of that name.

    Raises:
        UserError: there is none.
    """
    if name not in ARCHITECTURES:
        raise UserError(
            f"There is no architecture '{name}'. Choose one of: {', '.join(ARCHITECTURES)}."
        )
    return ARCHITECTURES[name]


def build_model(member: MemberConfig, pretrained: Path, seed: int) -> tuple[PairModel, Tokenizer]:
    """The member's network with a pre-trained encoder and a fresh head drawn from `seed`.

    Raises:
        UserError: the encoder cannot be loaded, or does not fit the architecture.
    """
    kind = architecture(member.architecture)
    find_source(member.encoder, pretrained)  # made before the seed: making it draws numbers, too
    torch.manual_seed(seed)
    encoder, tokenizer = load_encoder(member.encoder, pretrained, member.training.dropout)
    longest = member.max_length * kind.questions
    if encoder.positions is not None and encoder.positions < longest:
        raise UserError(
            f"max_length={member.max_length} makes sequences of up to {longest} tokens, but the "
            f"encoder '{member.encoder}' has {encoder.positions} positions: lower "
            "members.NAME.max_length."
        )
    model = kind.build(encoder, member)
    model.precision = member.training.precision
    return model, tokenizer


def code_of_member(member: MemberConfig) -> list[Callable]:
    """What of the registered code a member's training depends on, for `Step.code`."""
    kind = architecture(member.architecture)
    return [kind.read, kind.build, family_of(member.encoder).load]


def read_pairs_for(member: MemberConfig, frame: pd.DataFrame, tokenizer: Tokenizer) -> Pairs:
    """Tokenise a pair frame for the member's architecture."""
    return architecture(member.architecture).read(frame, tokenizer, member.max_length)


def load_encoder(name: str, pretrained: Path, dropout: float = 0.1) -> tuple[Encoder, Tokenizer]:
    """Load encoder and tokenizer.

    Args:
        name: "e5-small-zh" or "use-v3-zh" (embedded), "tiny" (random), a local directory, or a
            hub name (HF_ENDPOINT and HF_HUB_OFFLINE are honoured).
        pretrained: folder of what is made or converted on first use.
        dropout: probability for all dropout layers of the encoder while training.

    Raises:
        UserError: not found, unsafe or damaged weights, weights that do not fit the configuration,
            or a tokenizer that does not fit the vocabulary.
    """
    source = find_source(name, pretrained)
    return family_of(name).load(source, dropout)


def family_of(name: str) -> Family:
    """The family of an encoder; what is no directory, or says nothing else, is transformers'."""
    if name in MAKERS:
        return MAKERS[name][1]
    config = Path(name) / "config.json"
    try:
        kind = json.loads(config.read_text("utf-8")).get("model_type") if config.is_file() else ""
    except ValueError:  # broken JSON: transformers says what is wrong with it
        kind = ""
    return FAMILIES.get(kind, FAMILIES["transformers"])


def find_source(name: str, pretrained: Path) -> str:
    """The directory of an encoder, which is made, downloaded or converted if need be.

    Raises:
        UserError: a path that exists, but is no model directory; the errors of `local_directory`.
    """
    if name in MAKERS:
        return str(_make(name, pretrained))
    if Path(name).exists() and not (Path(name) / "config.json").is_file():
        raise UserError(
            f"{name} holds no config.json: it is not a model directory. Name the directory with "
            "config.json, model.safetensors and the tokenizer's files."
        )
    return str(local_directory(name, pretrained))


def _make(name: str, pretrained: Path) -> Path:
    target = pretrained / name
    pretrained.mkdir(parents=True, exist_ok=True)
    with FileLock(pretrained / f".{name}.lock"):
        if not (target / "config.json").is_file():
            MAKERS[name][0](target)
    return target
