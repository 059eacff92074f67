"""Questions → unit vectors, by an encoder between the pre-trained and the fine-tuned one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch.nn import functional
from tqdm import tqdm

from ..config import MemberConfig
from ..errors import UserError
from ..models.api import Encoder, Tokenizer
from ..models.precision import autocast
from ..models.tokens import Tokens
from .corpus import is_readable

CHUNK = 16_384  # questions that are tokenised and sorted at a time: bounds the memory
BATCH_TOKENS = 2_048
TUNED = 0.5  # share of the fine-tuned weights, as the paper recommends where nothing else is known


@torch.no_grad()
def average(pretrained: Encoder, tuned: Encoder, share: float = TUNED) -> Encoder:
    """`pretrained` with the weighted mean of both encoders' weights, in place.

    Fine-tuning on pairs teaches the cosine to judge them and forgets some of what the encoder knew
    of questions that no pair has shown. The mean of the weights keeps most of both (Wortsman et al.
    2022, "Robust fine-tuning of zero-shot models"). A head that was trained on the tuned vectors
    does not fit those of the mean, so it is for search and export only.

    Args:
        pretrained, tuned: the same architecture; share: of `tuned`, 0 to 1.
    """
    other = tuned.state_dict()
    for name, values in pretrained.state_dict().items():
        if values.is_floating_point():
            values.lerp_(other[name].to(values), share)
    return pretrained


@dataclass(frozen=True)
class Reading:
    """How an encoder reads a question: pooling, tokens at most (longer ones are cut), precision."""

    pooling: str
    max_length: int
    precision: str

    @classmethod
    def of(cls, member: MemberConfig, precision: str | None = None) -> "Reading":
        """As a member was trained, in its own precision or another one."""
        return cls(member.pooling, member.max_length, precision or member.training.precision)


def encode(
    encoder: Encoder,
    tokenizer: Tokenizer,
    questions: Sequence[str],
    reading: Reading,
    out: np.ndarray | None = None,
    progress: str = "",
) -> np.ndarray:
    """Vectors float32[n, H] of length 1, in the order of `questions`.

    Every distinct question is encoded once, in order of length, chunk by chunk.

    Args:
        out: array to fill, such as a memory map; by default a new one.
        progress: title of a progress bar, "" for none.

    Raises:
        UserError: one of the questions is no text.
    """
    for row, question in enumerate(questions):
        if not isinstance(question, str) or not is_readable(question):
            raise UserError(
                f"Question {row + 1:,} of {len(questions):,} is {question!r}, which is no text. "
                "Leave it out, or mend it."
            )
    codes, distinct = pd.factorize(np.array(questions, dtype=object))
    if out is not None and len(distinct) == len(questions):
        vectors = out
    else:
        vectors = np.empty((len(distinct), encoder.hidden_size), np.float32)
    encoder.eval()
    device = encoder.device
    bar = tqdm(
        total=len(distinct),
        desc=progress or None,
        unit="question",
        disable=not progress,
        mininterval=0.5,
    )
    with bar, torch.inference_mode(), autocast(device, reading.precision):
        for start in range(0, len(distinct), CHUNK):
            chunk = list(distinct[start : start + CHUNK])
            ids = tokenizer(chunk, truncation=True, max_length=reading.max_length)["input_ids"]
            for rows in _batches([len(row) for row in ids]):
                tokens = Tokens.pack([ids[row] for row in rows]).to(device)
                pooled = encoder.embed(tokens, reading.pooling)
                vectors[start + rows] = functional.normalize(pooled, dim=1).cpu().numpy()
                bar.update(len(rows))
    if len(distinct) == len(questions):
        return vectors
    if out is None:
        return vectors[codes]
    out[:] = vectors[codes]
    return out


def _batches(lengths: Sequence[int]) -> list[np.ndarray]:
    """Rows in order of length, cut into batches of about BATCH_TOKENS tokens."""
    order = np.argsort(lengths, kind="stable")
    ends = np.cumsum(np.asarray(lengths)[order])
    return np.split(order, np.flatnonzero(np.diff(ends // BATCH_TOKENS)) + 1)
