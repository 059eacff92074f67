"""On a GPU: an encoder as large as RoBERTa-wwm-large, against the plain transformers Trainer.

The weights are random, so nothing has to be fetched; speed does not depend on their values.
"""

import tempfile
from dataclasses import asdict
from typing import Any

import pandas as pd
import torch
from accelerate import PartialState
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    BertTokenizerFast,
    DataCollatorWithPadding,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from ...config import MemberConfig
from ...models.cross_encoder import CrossEncoder
from ...models.encoder import Encoder
from ...training.loop import autocast
from .contest import window
from .hardware import flop_per_token, product_peak
from .ours import Own
from .step_costs import ATTACKS
from .turns import OURS, Spread, Work, alternate, now, update_times

TRAINER = "transformers Trainer"
# hfl/chinese-roberta-wwm-ext-large
LARGE = {
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
    "vocab_size": 21128,
}


def large_encoder(
    shape: dict[str, int], frame: pd.DataFrame, pairs: int, precision: str, rounds: int
) -> dict[str, Any]:
    """Cross-encoder training: clean, under FGM, under PGD, and by the Trainer.

    Args:
        shape: of the encoder, as `transformers.BertConfig` names it.

    Returns:
        Spreads: tokens_per_s and share_of_peak of this project and the Trainer, `ratio` of
        their pairs a second, and the `attacks` as multiples of a clean epoch.
    """
    device = PartialState().device
    tokenizer = _tokenizer(frame, shape["vocab_size"])
    member = MemberConfig(architecture="cross", encoder="random")
    encoder = Encoder(BertModel(BertConfig(**shape), add_pooling_layer=False))
    own = Own(member, CrossEncoder(encoder, member.training.dropout), tokenizer, frame)
    trainer = _Trainer(BertConfig(**shape), tokenizer)
    turns = {
        attack: lambda number, attack=attack: own.train(
            window(frame, pairs, number), precision, attack
        )
        for attack in ATTACKS
    }
    turns[TRAINER] = lambda number: trainer.train(window(frame, pairs, number), precision)
    works = alternate(turns, rounds, "large encoder")
    flop = flop_per_token(encoder, training=True) / product_peak(precision, device)
    clean, plain = works["none"], works[TRAINER]
    result: dict[str, Any] = {"precision": precision}
    for name, done in ((OURS, clean), (TRAINER, plain)):
        tokens = [work.tokens / work.seconds for work in done]
        result[name] = {
            "tokens_per_s": asdict(Spread.of(tokens)),
            "share_of_peak": asdict(Spread.of([rate * flop for rate in tokens])),
        }
    result["ratio"] = _quotients(plain, clean)
    result["attacks"] = {name: _quotients(works[name], clean) for name in ATTACKS[1:]}
    return result


def _quotients(slow: list[Work], fast: list[Work]) -> dict[str, float]:
    seconds = [a.seconds / b.seconds for a, b in zip(slow, fast, strict=True)]
    return asdict(Spread.of(seconds))


def _tokenizer(frame: pd.DataFrame, size: int) -> PreTrainedTokenizerBase:
    """A vocabulary of the questions' characters, at most `size` with the special tokens."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    characters = sorted(set("".join(frame["query1"] + frame["query2"]).lower()))
    words = (specials + characters)[:size]
    return BertTokenizerFast(vocab={word: number for number, word in enumerate(words)})


class _Trainer:
    """BertForSequenceClassification under the transformers Trainer, batches by length."""

    def __init__(self, config: BertConfig, tokenizer: PreTrainedTokenizerBase) -> None:
        self.model, self.tokenizer = BertForSequenceClassification(config), tokenizer

    def train(self, rows: pd.DataFrame, precision: str) -> Work:
        """An epoch over `rows`; tokenisation is not counted."""
        encoded = self.tokenizer(
            rows["query1"].tolist(),
            rows["query2"].tolist(),
            truncation=True,
            max_length=2 * MemberConfig.model_fields["max_length"].default,
        )
        columns = {**encoded, "labels": rows["label"].tolist()}
        examples = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values())]
        clock = _Clock()
        with tempfile.TemporaryDirectory() as folder, update_times() as updates:
            trainer = _MixedTrainer(
                precision,
                self.model,
                TrainingArguments(
                    folder,
                    num_train_epochs=1,
                    per_device_train_batch_size=64,
                    use_cpu=not torch.cuda.is_available(),
                    train_sampling_strategy="group_by_length",
                    report_to="none",
                    save_strategy="no",
                    logging_strategy="no",
                    disable_tqdm=True,
                ),
                DataCollatorWithPadding(self.tokenizer),
                examples,
                callbacks=[clock],
            )
            trainer.remove_callback(PrinterCallback)  # standard output is the results'
            trainer.train()
        tokens = sum(map(len, encoded["input_ids"]))
        return Work(len(rows), tokens, updates[-1] - clock.started)


class _MixedTrainer(Trainer):
    """The Trainer in a given precision.

    Its own setting `bf16` does the same, but cannot be set where this project, in the same
    process, has set up accelerate otherwise.
    """

    def __init__(self, precision: str, *arguments, **named) -> None:
        super().__init__(*arguments, **named)
        self.precision = precision

    def compute_loss(self, *arguments, **named):
        with autocast(self.args.device, self.precision):
            return super().compute_loss(*arguments, **named)


class _Clock(TrainerCallback):
    """When training began, after the Trainer's own preparations."""

    started = 0.0

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        self.started = now()
