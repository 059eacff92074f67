"""The exported models as ONNX graphs for onnxruntime.

By hand, because sentence-transformers exports through optimum-onnx, whose version 0.1.0 needs
transformers below 4.58.
"""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor, nn
from transformers import AutoTokenizer

from ..files import atomic_path

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
MODEL, MODEL_INT8 = "model.onnx", "model_int8.onnx"


class _Graph(nn.Module):
    """A sentence-transformers model as a function of tensors."""

    def __init__(self, modules: nn.Sequential, output: str) -> None:
        super().__init__()
        self.backbone: Any = modules[0].model
        self.rest = nn.ModuleList(list(modules)[1:])
        self.output = output

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        hidden = self.backbone(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        features = {"token_embeddings": hidden, "attention_mask": attention_mask}
        for module in self.rest:
            features = module(features)
        return features[self.output]


def run_onnx(folder: Path, name: str, texts: Sequence, batch: int = 64) -> np.ndarray:
    """Outputs float32[n, ...] of an exported graph, in the order of `texts`.

    Args:
        folder: an exported model's directory; name: MODEL or MODEL_INT8.
        texts: questions, or pairs (tuples) of them.
    """
    tokenizer = AutoTokenizer.from_pretrained(folder)
    session = onnxruntime.InferenceSession(folder / "onnx" / name)
    order = np.argsort([len(str(text)) for text in texts], kind="stable")
    parts = []
    for start in range(0, len(order), batch):
        chosen = [texts[row] for row in order[start : start + batch]]
        columns = [chosen]
        if isinstance(chosen[0], tuple):
            columns = [list(column) for column in zip(*chosen, strict=True)]
        encoded = tokenizer(
            *columns,
            padding=True,
            truncation=True,
            return_tensors="np",
            return_token_type_ids=True,
        )
        parts.append(session.run(None, {key: encoded[key].astype(np.int64) for key in INPUTS})[0])
    return np.concatenate(parts)[np.argsort(order)]


def write_onnx(model: nn.Sequential, output: str, folder: Path, int8: bool) -> None:
    """Write `model.onnx`: int64[B, W] of INPUTS → float32[B, H] vectors or [B, 1] logits.

    Args:
        model: a sentence-transformers model; output: the feature that it ends in.
        int8: also write `model_int8.onnx`: 8-bit weights, activations quantised as they come
            (dynamic quantisation of onnxruntime).
    """
    folder.mkdir(parents=True)
    example = torch.tensor([[0, 5, 6, 2], [0, 7, 2, 1]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("width")}
    with _quiet(), torch.inference_mode(), atomic_path(folder / MODEL) as temporary:
        torch.onnx.export(
            _Graph(model, output).eval(),
            (example, mask, torch.zeros_like(example)),
            str(temporary),
            input_names=list(INPUTS),
            output_names=[output],
            dynamic_shapes={name: axes for name in INPUTS},
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    if int8:
        with _quiet(), atomic_path(folder / MODEL_INT8) as temporary:
            quantize_dynamic(str(folder / MODEL), str(temporary), weight_type=QuantType.QInt8)


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporters warn of their own insides; the parity tests say whether a graph is right."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
