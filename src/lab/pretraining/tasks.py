"""What a language model is trained to do, by architecture.

| architecture       | task                                        | source                |
|--------------------|---------------------------------------------|-----------------------|
| BERT, RoBERTa, …   | masked words                                | Cui et al. 2019       |
| ALBERT             | masked words and the order of two parts     | Lan et al. 2020       |
| XLNet              | tokens in a random order of factorisation   | Yang et al. 2019      |

Masking and permutation are done by transformers' collators. Batches hold questions of one length,
so nothing is padded, except by one token where XLNet's collator wants an even length.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import (
    AlbertForPreTraining,
    AutoModelForMaskedLM,
    DataCollatorForLanguageModeling,
    DataCollatorForPermutationLanguageModeling,
    PreTrainedTokenizerBase,
    XLNetLMHeadModel,
)

from .whole_words import spread_offsets, two_parts

IGNORED = -100  # the label of a position that is not to be predicted
MASKED_SHARE = 0.15  # of the words
LONGEST_SPAN = 3  # tokens that XLNet predicts in a row; its 5 are for texts of 512


class Task(Protocol):
    """Questions made ready for one pre-training task."""

    lengths: np.ndarray  # int64[N]: only questions of one length may share a batch

    def loss(self, model: nn.Module, rows: np.ndarray, rng: np.random.Generator) -> Tensor:
        """Mean loss over what is predicted in the questions `rows`; 0 where that is nothing."""
        ...


def model_class(model_type: str) -> Any:
    """The class with the heads of the architecture's task."""
    return {"albert": AlbertForPreTraining, "xlnet": XLNetLMHeadModel}.get(
        model_type, AutoModelForMaskedLM
    )


def make_task(
    model_type: str, questions: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> Task:
    """The task of an architecture over `questions`, cut to `max_length` tokens."""
    kinds = {"albert": WordsAndOrder, "xlnet": Permutation}
    return kinds.get(model_type, MaskedWords)(questions, tokenizer, max_length)


@dataclass(frozen=True)
class _Encoded:
    """Tokens of one question, or of its two parts, as the masking collator wants them."""

    input_ids: list[int]
    token_type_ids: list[int]
    special_tokens_mask: list[int]
    offset_mapping: list[tuple[int, int]]


def _encode(
    texts: tuple[str, ...], tokenizer: PreTrainedTokenizerBase, max_length: int
) -> _Encoded:
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
    return _Encoded(
        encoded["input_ids"], encoded["token_type_ids"], encoded["special_tokens_mask"], offsets
    )


class MaskedWords:
    """Whole words are masked and predicted."""

    def __init__(
        self, questions: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int
    ) -> None:
        self.encoded = [_encode((text,), tokenizer, max_length) for text in questions]
        self.lengths = np.array([len(one.input_ids) for one in self.encoded])
        self.collator = word_collator(tokenizer)

    def loss(self, model: nn.Module, rows: np.ndarray, rng: np.random.Generator) -> Tensor:
        """Cross-entropy of the masked words."""
        batch = _masked(self.collator, [self.encoded[row] for row in rows], model)
        labels = batch.pop("labels")
        return mean_cross_entropy(model(**batch).logits, labels)


class WordsAndOrder:
    """Masked words, and of questions with two parts whether these stand in their order."""

    def __init__(
        self, questions: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int
    ) -> None:
        self.orders: list[tuple[_Encoded, ...]] = []
        for text in questions:
            parts = two_parts(text)
            variants = [(text,)] if parts is None else [parts, parts[::-1]]
            self.orders.append(tuple(_encode(v, tokenizer, max_length) for v in variants))
        self.lengths = np.array([len(orders[0].input_ids) for orders in self.orders])
        self.collator = word_collator(tokenizer)

    def loss(self, model: nn.Module, rows: np.ndarray, rng: np.random.Generator) -> Tensor:
        """Cross-entropy of the masked words plus that of the order; a coin chooses the order."""
        chosen, order = [], []
        for row in rows:
            side = int(rng.integers(len(self.orders[row])))
            chosen.append(self.orders[row][side])
            order.append(side if len(self.orders[row]) == 2 else IGNORED)
        batch = _masked(self.collator, chosen, model)
        labels = batch.pop("labels")
        output = model(**batch)
        goal = torch.tensor(order, device=labels.device)
        return mean_cross_entropy(output.prediction_logits, labels) + mean_cross_entropy(
            output.sop_logits, goal
        )


class Permutation:
    """Tokens are predicted in a random order, each from those before it in that order."""

    def __init__(
        self, questions: Sequence[str], tokenizer: PreTrainedTokenizerBase, max_length: int
    ) -> None:
        ids = tokenizer(list(questions), truncation=True, max_length=max_length)["input_ids"]
        # The collator wants even lengths. The model does not read what is added for that.
        self.pad = tokenizer.pad_token_id
        self.ids = [row + [self.pad] * (len(row) % 2) for row in ids]
        self.lengths = np.array([len(row) for row in self.ids])
        self.collator = DataCollatorForPermutationLanguageModeling(
            tokenizer, max_span_length=LONGEST_SPAN
        )

    def loss(self, model: nn.Module, rows: np.ndarray, rng: np.random.Generator) -> Tensor:
        """Cross-entropy of the tokens that are predicted."""
        batch = self.collator([{"input_ids": self.ids[row]} for row in rows])
        batch = {name: values.to(_device(model)) for name, values in batch.items()}
        labels = batch.pop("labels")
        batch["attention_mask"] = (batch["input_ids"] != self.pad).long()
        return mean_cross_entropy(model(**batch).logits, labels)


def word_collator(tokenizer: PreTrainedTokenizerBase) -> DataCollatorForLanguageModeling:
    """Masks whole words; always by the mask token, which is all that it can do with words."""
    return DataCollatorForLanguageModeling(
        tokenizer,
        whole_word_mask=True,
        mlm_probability=MASKED_SHARE,
        mask_replace_prob=1.0,
        random_replace_prob=0.0,
    )


def _masked(
    collator: DataCollatorForLanguageModeling, encoded: list[_Encoded], model: nn.Module
) -> dict[str, Tensor]:
    batch = collator([dict(vars(one)) for one in encoded])
    if getattr(model.config, "type_vocab_size", 0) < 2:
        batch.pop("token_type_ids")
    return {name: values.to(_device(model)) for name, values in batch.items()}


def mean_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean over the positions whose label is not `IGNORED`; 0, not NaN, where there is none."""
    total = functional.cross_entropy(
        logits.float().flatten(0, -2), labels.flatten(), ignore_index=IGNORED, reduction="sum"
    )
    return total / (labels != IGNORED).sum().clamp_min(1)


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device
