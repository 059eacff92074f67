"""Tell transformers' collator where Chinese words begin.

`DataCollatorForLanguageModeling` masks whole words and takes for the beginning of a word every
token that does not start where the one before it ended, as behind a space. Chinese has no spaces,
so the offsets are pulled apart here at the boundaries of jieba's words (Cui et al. 2019,
"Pre-training with whole word masking for Chinese BERT").
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...data.entities import words
from ...models.api import Tokenizer

# Where a question has two parts: behind the first mark inside it.
_INNER_MARK = re.compile(r"(?<=[，,。；;？?！!、\s])(?=\w)")
Encoded = dict[str, Any]  # tokens of one sequence, as the collator wants them


def encode_words(texts: tuple[str, ...], tokenizer: Tokenizer, max_length: int) -> Encoded:
    """One or two texts as one sequence, the offsets of each pulled apart at its words."""
    encoded = tokenizer(
        *texts,
        truncation=True,
        max_length=max_length,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        return_token_type_ids=True,
    )
    offsets = [(0, 0)] * len(encoded["input_ids"])
    for number, text in enumerate(texts):
        places = [i for i, part in enumerate(encoded.sequence_ids()) if part == number]
        own = spread_offsets(text, [encoded["offset_mapping"][i] for i in places])
        for place, offset in zip(places, own, strict=True):
            offsets[place] = offset
    return dict(encoded) | {"offset_mapping": offsets}


def spread_offsets(text: str, offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Offsets of a text's tokens, each moved right by the number of words before its own."""
    ends = np.cumsum([len(word) for word in words(text)])
    shifts = np.searchsorted(ends, [start for start, _ in offsets], side="right")
    return [
        (start + int(shift), end + int(shift))
        for (start, end), shift in zip(offsets, shifts, strict=True)
    ]


def two_parts(text: str) -> tuple[str, str] | None:
    """The text cut behind its first inner punctuation mark; None where it has none.

    "我咳嗽三天了，是肺炎吗？" → ("我咳嗽三天了，", "是肺炎吗？").
    """
    found = _INNER_MARK.search(text)
    if found is None or found.start() < 2:
        return None
    return text[: found.start()], text[found.start() :]
