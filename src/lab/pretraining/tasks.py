"""What a language model is trained to do, by architecture.

| architecture       | task                                        | source                |
|--------------------|---------------------------------------------|-----------------------|
| BERT, RoBERTa, …   | masked words                                | Cui et al. 2019       |
| ALBERT             | masked words and the order of two parts     | Lan et al. 2020       |
| XLNet              | tokens in a random order of factorisation   | Yang et al. 2019      |

Masking and permutation are done by transformers' collators. Batches hold questions of one length,
so nothing is padded, except by one token where XLNet's collator wants an even length. Labels of
positions that are not predicted are IGNORED.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional

from ...models.api import Tokenizer
from .whole_words import encode_words, two_parts

IGNORED = -100
MASKED_SHARE = 0.15  # of the words
LONGEST_SPAN = 3  # tokens that XLNet predicts in a row; its 5 are for texts of 512


def model_class(model_type: str) -> Any:
    """The class with the heads of the architecture's task."""
    special = {"albert": transformers.AlbertForPreTraining, "xlnet": transformers.XLNetLMHeadModel}
    return special.get(model_type, transformers.AutoModelForMaskedLM)


class MaskedWords:
    """Whole words are masked and predicted; with `order`, the order of two parts is, too.

    Words are always replaced by the mask token, which is all that the collator can do with them.

    Attributes:
        lengths: int64[N]: only questions of one length may share a batch.
        readings: of each question the encoded text or, with `order` and where it has two parts,
            both orders of them, the right one first.
    """

    def __init__(
        self, questions: Sequence[str], tokenizer: Tokenizer, max_length: int, order: bool = False
    ) -> None:
        self.readings = []
        for text in questions:
            parts = two_parts(text) if order else None
            readings = [(text,)] if parts is None else [parts, parts[::-1]]
            self.readings.append([encode_words(texts, tokenizer, max_length) for texts in readings])
        self.lengths = np.array([len(readings[0]["input_ids"]) for readings in self.readings])
        self.collator = transformers.DataCollatorForLanguageModeling(
            tokenizer,
            whole_word_mask=True,
            mlm_probability=MASKED_SHARE,
            mask_replace_prob=1.0,
            random_replace_prob=0.0,
        )

    def loss(self, model: nn.Module, rows: np.ndarray, rng: np.random.Generator) -> Tensor:
        """Cross-entropy of the masked words plus that of the order, which a coin chooses."""
        sides = [int(rng.integers(len(self.readings[row]))) for row in rows]
        output, words, labels = self.predict(model, rows, sides)
        loss = mean_cross_entropy(words, labels)
        if "sop_logits" in output:
            has_parts = [len(self.readings[row]) == 2 for row in rows]
            goal = torch.from_numpy(np.where(has_parts, sides, IGNORED)).to(labels.device)
            loss = loss + mean_cross_entropy(output.sop_logits, goal)
        return loss

    def predict(
        self, model: nn.Module, rows: np.ndarray, sides: Sequence[int]
    ) -> tuple[Any, Tensor, Tensor]:
        """The model's output on masked questions, its logits of the words, and their labels."""
        chosen = [dict(self.readings[row][side]) for row, side in zip(rows, sides, strict=True)]
        batch = self.collator(chosen)
        if getattr(model.config, "type_vocab_size", 0) < 2:
            batch.pop("token_type_ids")
        output, labels = _run(model, batch)
        return output, output["prediction_logits" if "sop_logits" in output else "logits"], labels


class Permutation:
    """Tokens are predicted in a random order, each from those before it in that order."""

    def __init__(self, questions: Sequence[str], tokenizer: Tokenizer, max_length: int) -> None:
        ids = tokenizer(list(questions), truncation=True, max_length=max_length)["input_ids"]
        self.collator = transformers.DataCollatorForPermutationLanguageModeling(
            tokenizer, max_span_length=LONGEST_SPAN
        )
        # The collator wants even lengths. The model does not read what is added for that.
        self.pad = self.collator.tokenizer.pad_token_id
        self.ids = [row + [self.pad] * (len(row) % 2) for row in ids]
        self.lengths = np.array([len(row) for row in self.ids])

    def loss(self, model: nn.Module, rows: np.ndarray, rng: np.random.Generator) -> Tensor:
        """Cross-entropy of the tokens that are predicted."""
        batch = self.collator([{"input_ids": self.ids[row]} for row in rows])
        batch["attention_mask"] = (batch["input_ids"] != self.pad).long()
        output, labels = _run(model, batch)
        return mean_cross_entropy(output.logits, labels)


Task = MaskedWords | Permutation


def make_task(
    model_type: str, questions: Sequence[str], tokenizer: Tokenizer, max_length: int
) -> Task:
    """The task of an architecture over `questions`, cut to `max_length` tokens."""
    if model_type == "xlnet":
        return Permutation(questions, tokenizer, max_length)
    return MaskedWords(questions, tokenizer, max_length, order=model_type == "albert")


def _run(model: nn.Module, batch: dict[str, Tensor]) -> tuple[Any, Tensor]:
    """Output and labels."""
    device = next(model.parameters()).device
    inputs = {name: values.to(device) for name, values in batch.items()}
    labels = inputs.pop("labels")
    return model(**inputs), labels


def mean_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean over the positions that are predicted; 0, not NaN, where there is none."""
    total = functional.cross_entropy(
        logits.float().flatten(0, -2), labels.flatten(), ignore_index=IGNORED, reduction="sum"
    )
    return total / (labels != IGNORED).sum().clamp_min(1)
