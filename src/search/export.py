"""Write the trained models in the formats that other tools load.

    DIR/bi-encoder/      a sentence-transformers directory
    DIR/cross-encoder/   a directory for sentence_transformers.CrossEncoder
    DIR/*/onnx/          model.onnx, and model_int8.onnx where asked for

The cross-encoder's head reads mean pooling and [CLS] together. No sequence-classification class of
transformers has such a head (all read one pooled vector), so it is written as the modules of
sentence-transformers that compute exactly this: Transformer, Pooling, Dense, Dense.
"""

import copy
import shutil
from pathlib import Path
from typing import Any

from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from torch import nn

from ..errors import UserError
from ..files import write_text
from ..models.api import Encoder
from ..models.transformer import TransformerEncoder
from .cards import model_card
from .matcher import Matcher
from .onnx import write_onnx

BI_ENCODER, CROSS_ENCODER = "bi-encoder", "cross-encoder"


def export(matcher: Matcher, target: Path, *, int8: bool) -> list[Path]:
    """Write both models; returns their directories. A directory appears whole or not at all.

    Args:
        int8: also write ONNX files with 8-bit weights, a quarter of the size.

    Raises:
        UserError: one of the directories is there already.
    """
    folders = [target / BI_ENCODER, target / CROSS_ENCODER]
    for folder in folders:
        if folder.exists():
            raise UserError(f"{folder} is there already. Remove it, or export to another folder.")
    partial = target / ".partial"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        _write_bi_encoder(matcher, partial / BI_ENCODER, int8)
        _write_cross_encoder(matcher, partial / CROSS_ENCODER, int8)
        for file in partial.rglob("*.safetensors"):
            file.chmod(0o644)  # the library writes them for their owner only
        for folder in folders:
            (partial / folder.name).rename(folder)
    except OSError as error:
        raise UserError(f"{target}: the models cannot be written ({error.strerror}).") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folders


def _write_bi_encoder(matcher: Matcher, folder: Path, int8: bool) -> None:
    member = matcher.bi.member
    encoder = matcher.encoder
    transformer = _transformer(encoder, matcher.bi.tokenizer, member.max_length, folder)
    pooling = Pooling(encoder.hidden_size, member.pooling)
    model = SentenceTransformer(modules=[transformer, pooling, Normalize()], device="cpu")
    model.save(str(folder), create_model_card=False)
    write_onnx(model, "sentence_embedding", folder / "onnx", int8)
    write_text(folder / "README.md", model_card(matcher, matcher.chosen, matcher.bi, int8))


def _write_cross_encoder(matcher: Matcher, folder: Path, int8: bool) -> None:
    network: Any = matcher.cross.model  # a models.cross_encoder.CrossEncoder, with its head
    length = 2 * matcher.cross.member.max_length
    transformer = _transformer(network.encoder, matcher.cross.tokenizer, length, folder)
    # The head's layers: dropout, linear, tanh, dropout, linear.
    inner, outer = (layer for layer in network.head if isinstance(layer, nn.Linear))
    modules = [
        transformer,
        Pooling(network.encoder.hidden_size, ("mean", "cls")),
        _dense(inner, nn.Tanh(), "sentence_embedding"),
        _dense(outer, nn.Identity(), "scores"),
    ]
    model = CrossEncoder(modules=modules, device="cpu")
    model.save(str(folder), create_model_card=False)
    write_onnx(model, "scores", folder / "onnx", int8)
    write_text(folder / "README.md", model_card(matcher, matcher.chosen_cross, matcher.cross, int8))


def _transformer(encoder: Encoder, tokenizer: Any, length: int, folder: Path) -> Transformer:
    """The encoder as sentence-transformers' first module, through an ordinary model directory."""
    plain = folder / "plain"
    assert isinstance(encoder, TransformerEncoder)  # `choose` has seen to it
    backbone = copy.deepcopy(encoder.backbone).cpu()
    backbone.set_attn_implementation("eager")  # the packed attention is this project's own
    backbone.save_pretrained(plain)
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.model_max_length = length
    tokenizer.save_pretrained(plain)
    transformer = Transformer(str(plain), max_seq_length=length)
    shutil.rmtree(folder)
    return transformer.eval()


def _dense(layer: nn.Linear, activation: nn.Module, output: str) -> Dense:
    return Dense(
        layer.in_features,
        layer.out_features,
        activation_function=activation,
        init_weight=layer.weight.detach().cpu().clone(),
        init_bias=layer.bias.detach().cpu().clone(),
        module_output_name=output,
    )
