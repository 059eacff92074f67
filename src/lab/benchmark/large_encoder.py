"""On a GPU: an encoder as large as RoBERTa-wwm-large, against the plain transformers Trainer.

The weights are random, so nothing has to be fetched; speed does not depend on their values.
"""

import tempfile
from typing import Any

import pandas as pd
import torch
import transformers

from ...config import MemberConfig
from ...models.cross_encoder import CrossEncoder
from ...models.precision import autocast
from ...models.transformer import TransformerEncoder
from .hardware import flop_per_token, product_peak, token_rates
from .ours import Ours
from .scale import Bench
from .step_costs import ATTACKS, attack_turns
from .turns import OURS, Work, now, race, spread, turn, update_times

TRAINER = "transformers Trainer"


def large_encoder(bench: Bench) -> dict[str, Any] | None:
    """Cross-encoder training: clean, under FGM, under PGD, and by the Trainer.

    Returns:
        Spreads: tokens_per_s and share_of_peak of this project and the Trainer, `ratio` of
        their pairs a second, and the `attacks` as multiples of a clean epoch. None where there is
        no GPU.
    """
    if bench.device.type != "cuda" and not bench.scale.large_anywhere:
        return None
    config, pairs = transformers.BertConfig(**bench.scale.large), 4 * bench.scale.train_pairs
    tokenizer = _tokenizer(bench.frame, config.vocab_size)
    member = MemberConfig(architecture="cross", encoder="random")
    encoder = TransformerEncoder(transformers.BertModel(config, add_pooling_layer=False))
    ours = CrossEncoder(encoder, member.training.dropout)
    theirs = transformers.BertForSequenceClassification(
        transformers.BertConfig(**bench.scale.large)
    )
    turns = attack_turns(Ours(member, ours, tokenizer, bench.frame), bench, pairs)
    turns[TRAINER] = turn(_ByTrainer(theirs, tokenizer).train, bench.frame, pairs, bench.fastest)
    works = race(turns, bench.scale.rounds, "large encoder")
    flop = flop_per_token(encoder, training=True)
    peak = product_peak(bench.fastest, bench.device)
    slower = {name: spread(w["seconds"] / works["none"]["seconds"]) for name, w in works.items()}
    return {
        "precision": bench.fastest,
        OURS: token_rates(works["none"], flop, peak),
        TRAINER: token_rates(works[TRAINER], flop, peak),
        "ratio": slower[TRAINER],
        "attacks": {attack: slower[attack] for attack in ATTACKS[1:]},
    }


def _tokenizer(frame: pd.DataFrame, size: int) -> transformers.PreTrainedTokenizerBase:
    """A vocabulary of the questions' characters, at most `size` with the special tokens."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = specials + sorted(set("".join(frame["query1"] + frame["query2"]).lower()))
    vocabulary = {word: number for number, word in enumerate(words[:size])}
    return transformers.BertTokenizerFast(vocab=vocabulary)


class _ByTrainer:
    """A network under the transformers Trainer, batches by length."""

    def __init__(
        self, model: torch.nn.Module, tokenizer: transformers.PreTrainedTokenizerBase
    ) -> None:
        self.model, self.tokenizer = model, tokenizer

    def train(self, rows: pd.DataFrame, precision: str) -> Work:
        """An epoch over `rows`; neither tokenisation nor the Trainer's preparations count."""
        encoded = self.tokenizer(
            rows["query1"].tolist(),
            rows["query2"].tolist(),
            truncation=True,
            max_length=2 * MemberConfig.model_fields["max_length"].default,
        )
        examples = pd.DataFrame({**encoded, "labels": rows["label"].to_numpy()}).to_dict("records")
        with tempfile.TemporaryDirectory() as folder, update_times() as updates:
            settings = transformers.TrainingArguments(
                folder,
                num_train_epochs=1,
                per_device_train_batch_size=64,
                use_cpu=not torch.cuda.is_available(),
                train_sampling_strategy="group_by_length",
                report_to="none",
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
            )
            collator, clock = transformers.DataCollatorWithPadding(self.tokenizer), _Clock()
            trainer = _MixedTrainer(self.model, settings, collator, examples, callbacks=[clock])
            trainer.precision = precision
            trainer.remove_callback(transformers.PrinterCallback)  # it writes to standard output
            trainer.train()
        tokens = sum(map(len, encoded["input_ids"]))
        return Work(len(rows), tokens, updates[-1] - clock.started)


class _MixedTrainer(transformers.Trainer):
    """The Trainer in a given precision.

    Its own setting `bf16` does the same, but cannot be set where this project, in the same
    process, has set up accelerate otherwise.
    """

    precision = "fp32"

    def compute_loss(self, *arguments, **named):
        with autocast(self.args.device, self.precision):
            return super().compute_loss(*arguments, **named)


class _Clock(transformers.TrainerCallback):
    started = 0.0

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        self.started = now()
