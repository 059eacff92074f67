"""The convolutional encoder over n-grams of Google's multilingual Universal Sentence Encoder v3.

Yang et al. 2019, "Multilingual Universal Sentence Encoder for Semantic Retrieval": 16 languages,
Chinese among them. use_wheel.py gets its weights.
"""

import json
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedTokenizerFast

from ..errors import UserError
from .api import Encoder, Family
from .tokens import Tokens

MODEL_TYPE = "use-multilingual-v3"  # in config.json
WIDTH, BRANCH_WIDTH, ORDERS = 512, 256, (2, 3, 5)  # of vectors; of n-gram branches


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


class NgramEncoder(Encoder):
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

    @property
    def word_embeddings(self) -> nn.Embedding:
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

    @classmethod
    def load(cls, directory: Path) -> "NgramEncoder":
        """The encoder of a model directory, as use_wheel.py writes it."""
        encoder = cls(json.loads((directory / "config.json").read_text("utf-8"))["vocab_size"])
        encoder.load_state_dict(load_file(directory / "model.safetensors"))
        return encoder


def load(source: str, dropout: float) -> tuple[NgramEncoder, PreTrainedTokenizerFast]:
    """Encoder and tokenizer of a model directory; the network has no dropout.

    Raises:
        UserError: a file is missing or damaged.
    """
    directory = Path(source)
    try:
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(directory / "tokenizer.json"))
        return NgramEncoder.load(directory), tokenizer
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        raise UserError(
            f"The encoder in {directory} cannot be loaded: {error}. Remove the directory; an "
            "embedded encoder is made again on its next use."
        ) from error


FAMILY = Family(load, gives_tokens=False)
