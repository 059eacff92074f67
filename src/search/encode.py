"""Questions → unit vectors: every distinct question once, in order of length, chunk by chunk."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm
from transformers import PreTrainedTokenizerBase

from ..errors import UserError
from ..models.encoder import Encoder
from ..models.tokens import Tokens
from ..training.loop import autocast
from .corpus import is_readable

CHUNK = 16_384  # questions that are tokenised and sorted at a time: bounds the memory
BATCH_TOKENS = 2_048


def encode(
    encoder: Encoder,
    pooling: str,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[str],
    *,
    max_length: int,
    precision: str,
    out: np.ndarray | None = None,
    progress: str = "",
) -> np.ndarray:
    """Vectors float32[n, H] of length 1, in the order of `questions`.

    Args:
        max_length: tokens a question; longer ones are cut.
        precision: as in the settings ("auto", "bf16", "fp32").
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
    vectors = out
    if out is None or len(distinct) < len(questions):
        vectors = np.empty((len(distinct), encoder.hidden_size), np.float32)
    encoder.eval()
    device = encoder.word_embeddings.weight.device
    bar = tqdm(
        total=len(distinct),
        desc=progress or None,
        unit="question",
        disable=not progress,
        mininterval=0.5,
    )
    with bar, torch.inference_mode(), autocast(device, precision):
        for start in range(0, len(distinct), CHUNK):
            chunk = list(distinct[start : start + CHUNK])
            ids = tokenizer(chunk, truncation=True, max_length=max_length)["input_ids"]
            for rows in _batches([len(row) for row in ids]):
                tokens = Tokens.pack([ids[row] for row in rows]).to(device)
                embedded = torch.nn.functional.normalize(encoder.embed(tokens, pooling), dim=1)
                vectors[start + rows] = embedded.cpu().numpy()
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
