"""Siamese networks with different encoders, from the oldest up.

All have the same head and the same objective; what changes is how a question becomes a vector, and
how much of it was learnt elsewhere. The encoders without pre-training see the training questions
only; all but the Transformer, which starts from random weights, start from word vectors trained on
these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import BertConfig, BertModel

from ...config import MemberConfig
from ...models.api import Encoder, PairModel, Tokenizer
from ...models.registry import build_model
from ...models.siamese import Siamese
from ...models.transformer import TransformerEncoder
from .encoders.averaged import Averaged
from .encoders.bilstm import BiLstm
from .encoders.self_attention import SelfAttention
from .encoders.text_cnn import TextCnn
from .encoders.text_vocabulary import TextVocabulary
from .encoders.word2vec import skip_gram
from .trials.arm import Arm, Design, Outcome, Study, Trial, Workplace
from .trials.budget import Budget
from .trials.fitted import Build, train_member
from .trials.standard import HEAD, base_member, official_column, with_training

REFERENCE = "pre-trained, fine-tuned"
SIZE = 128  # components of a word vector
LONGER = 4  # times the epochs of the reference: what starts from little needs more, and is cheap
RATE = 1e-3


def transformer(table: Tensor, dropout: float) -> TransformerEncoder:
    """A two-layer BERT with random weights; of `table` only the number of rows counts."""
    config = BertConfig(
        vocab_size=len(table),
        hidden_size=SIZE,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=4 * SIZE,
        max_position_embeddings=128,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    return TransformerEncoder(BertModel(config, add_pooling_layer=False))


@dataclass(frozen=True)
class Lexical:
    """An encoder over units of the training questions: which units, and what is made of them."""

    unit: str
    make: Callable[[Tensor, float], Encoder]  # of the word vectors and the dropout


LEXICAL: Mapping[str, Lexical] = {
    "word2vec averaged, words": Lexical("words", lambda table, _: Averaged(table)),
    "word2vec averaged, characters": Lexical("characters", lambda table, _: Averaged(table)),
    "TextCNN": Lexical("characters", lambda table, dropout: TextCnn(table, SIZE, dropout)),
    "BiLSTM": Lexical("characters", lambda table, dropout: BiLstm(table, SIZE, dropout)),
    "BiLSTM, self-attention": Lexical(
        "characters", lambda table, dropout: SelfAttention(table, SIZE // 2, SIZE // 2, 4, dropout)
    ),
    "Transformer from scratch": Lexical("characters", transformer),
}


def design(place: Workplace) -> Design:
    """The lexical encoders, and the profile's encoder frozen and fine-tuned."""
    base = base_member(place.config, "siamese", place.budget)
    longer = with_training(base, epochs=LONGER * base.training.epochs)
    small = with_training(longer, encoder_lr=RATE, head_lr=RATE, layer_decay=1.0, precision="fp32")
    arms = [
        _arm(name, small.model_copy(update={"encoder": name}), lexical=lexical)
        for name, lexical in LEXICAL.items()
    ]
    # A frozen encoder is asked as it will be asked later: without dropout.
    arms.append(_arm("pre-trained, frozen", with_training(longer, dropout=0.0), build=build_frozen))
    arms.append(_arm(REFERENCE, base, build=build_model))
    return Design(arms, [official_column(place)])


def _arm(
    name: str,
    member: MemberConfig,
    *,
    lexical: Lexical | None = None,
    build: Build | None = None,
) -> Arm:
    def make(trial: Trial) -> Outcome:
        training = trial.parts.training
        questions = sorted({*training["query1"], *training["query2"]})

        def build_on_questions(member: MemberConfig, pretrained: Path, seed: int):
            assert lexical is not None  # or `build` is given
            return build_lexical(lexical, member, questions, seed)

        fitted = train_member(trial, member, build=build or build_on_questions)
        logits, rate = fitted.timed(trial.parts.evaluation)
        return fitted.outcome(
            {HEAD: logits},
            trained_parameters=fitted.trained_parameters,
            questions_per_second=rate,
        )

    return Arm(name, {"member": member.model_dump(mode="json")}, make, REFERENCE)


def build_lexical(
    lexical: Lexical, member: MemberConfig, questions: list[str], seed: int
) -> tuple[Siamese, TextVocabulary]:
    """Word vectors from `questions`, an encoder on top of them, and a fresh head."""
    torch.manual_seed(seed)
    vocabulary = TextVocabulary.of(questions, lexical.unit)
    table = skip_gram(questions, vocabulary, SIZE, seed)
    dropout = member.training.dropout
    encoder = lexical.make(table, dropout)
    return Siamese(encoder, member.pooling, member.features, dropout), vocabulary


def build_frozen(member: MemberConfig, pretrained: Path, seed: int) -> tuple[PairModel, Tokenizer]:
    """The member's network with an encoder that training leaves as it is."""
    model, tokenizer = build_model(member, pretrained, seed)
    model.encoder.requires_grad_(False)
    return model, tokenizer


STUDY = Study(
    title="Encoders of the bi-encoder, from word vectors to a fine-tuned Transformer",
    full=Budget(pairs=2000, evaluation=2900, epochs=3),
    design=design,
    caption=(
        f"All but the fine-tuned encoder train {LONGER} times as many epochs. Word vectors: "
        f"skip-gram of {SIZE} components, trained on the training questions; fixed where they are "
        "averaged, trained on where they are the input of a network, unused by the Transformer; "
        "their own training is not in the seconds. Questions/s: encoding and scoring the "
        "evaluation pairs, each question once, by the same clock as the seconds."
    ),
)
