"""BERT, ALBERT and XLNet as encoders of both architectures, through the same loader.

Three models of the same shape (layers, width, heads) and vocabulary start from random weights, are
pre-trained on the same questions with the task that each is known for (pretraining/tasks.py), and
are fine-tuned and scored like any encoder of the pipeline. The ones without pre-training show what
it was worth. BERT and ALBERT are told which question of a pair a token belongs to; XLNet, whose
configuration has no such embedding, is not. This compares small models honestly; it says nothing
about the published large ones, which have read a thousand times as much.
"""

from functools import partial
from pathlib import Path

import torch
from transformers import (
    AlbertConfig,
    BertConfig,
    BertTokenizer,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    XLNetConfig,
)

from ...config import PretrainConfig
from ...data.pairs import read_pairs
from ...step import Step
from ..pretraining.language_model import save
from ..pretraining.pretrain import pretraining_step
from ..pretraining.questions import collect
from ..pretraining.tasks import model_class
from .small_batches import NOTE, small_batch_member
from .trials.arm import Arm, Design, Study, Workplace
from .trials.budget import FIRST_SEED, Budget
from .trials.split_parts import exploring_folds
from .trials.standard import member_arm, official_column, with_training

LAYERS, WIDTH, HEADS = 4, 192, 4
RATE = 5e-4  # of fine-tuning: these are small models
LONGER = 2  # times the epochs of the budget, for the same reason
PRETRAINING_EPOCHS = 5
PRETRAINING_BATCH = 32  # questions; half the stage's, for twice the steps
EXTERNAL = ("external", "chip2019.csv")
QUICK_QUESTIONS = 600


def configs(vocabulary: int) -> dict[str, PreTrainedConfig]:
    """The three architectures in one shape. ALBERT: factorised embeddings, shared layers."""
    common = {"vocab_size": vocabulary, "pad_token_id": 0, "max_position_embeddings": 128}
    shape = {
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": 4 * WIDTH,
    }
    return {
        "BERT": BertConfig(**common, **shape),
        "ALBERT": AlbertConfig(
            **common,
            **shape,
            embedding_size=WIDTH // 3,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        ),
        "XLNet": XLNetConfig(
            vocab_size=vocabulary,
            pad_token_id=0,
            d_model=WIDTH,
            n_layer=LAYERS,
            n_head=HEADS,
            d_inner=4 * WIDTH,
        ),
    }


def dropout_of(family: str) -> float:
    """ALBERT is trained without dropout (Lan et al. 2020, section 4.5)."""
    return 0.0 if family == "ALBERT" else 0.1


def character_tokenizer(questions: list[str]) -> PreTrainedTokenizerFast:
    """BERT's tokenizer for Chinese, every character a token, over those that `questions` have."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    found = sorted({character for text in questions for character in text.lower()})
    inside_words = ["##" + c for c in found if c.isascii() and c.isalnum()]
    units = specials + [c for c in found if not c.isspace()] + inside_words
    bert = BertTokenizer(vocab={unit: number for number, unit in enumerate(units)})
    return PreTrainedTokenizerFast(
        tokenizer_object=bert.backend_tokenizer,
        model_max_length=128,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def write_random(config: PreTrainedConfig, questions: list[str], folder: Path) -> None:
    """A model directory with random weights, seeded, the heads of its task included."""
    torch.manual_seed(FIRST_SEED)
    kind = model_class(config.model_type)
    make = getattr(kind, "from_config", kind)  # an Auto class has one, a model is called
    save(make(config), character_tokenizer(questions), folder)


def read_questions(place: Workplace) -> list[str]:
    """The questions of the training folds and of the external pairs, none of the evaluation."""
    train = read_pairs(place.train, labelled=True).frame
    folds = exploring_folds(train)
    frames = [train[folds != 0]]
    external = place.config.data.external or place.beside_data(*EXTERNAL)
    if external is not None:
        frames.append(read_pairs(external, labelled=True).frame)
    questions = collect(frames, held_out=[train[folds == 0]])
    return questions[:QUICK_QUESTIONS] if place.budget.seeds == 1 else questions


def design(place: Workplace) -> Design:
    """Makes the model directories, then an arm for each, in each architecture."""
    questions = read_questions(place)
    size = len(character_tokenizer(questions))
    arms = []
    for family, config in configs(size).items():
        random = place.work / "random" / family
        Step(
            f"{family} with random weights",
            random,
            partial(write_random, config, questions),
            settings={"config": config.to_dict(), "questions": "\n".join(questions)},
        ).run()
        trained = place.work / "pretrained" / family
        settings = PretrainConfig(
            epochs=1 if place.budget.seeds == 1 else PRETRAINING_EPOCHS,
            batch=PRETRAINING_BATCH,
            learning_rate=RATE,
            dropout=dropout_of(family),
        )
        pretraining_step(family, str(random), questions, settings, trained, from_scratch=True).run()
        for state, folder in (("random", random), ("pre-trained", trained)):
            for architecture in ("siamese", "cross"):
                arms.append(_arm(place, family, state, architecture, folder))
    note = (
        f"Pre-training: {len(questions):,} questions, none of the evaluation part; one run for "
        f"all seeds. Shape: {LAYERS} layers of {WIDTH}, {HEADS} heads."
    )
    return Design(arms, [official_column(place)], [note])


def _arm(place: Workplace, family: str, state: str, architecture: str, folder: Path) -> Arm:
    base = small_batch_member(place.config, architecture, place.budget)
    member = with_training(
        base.model_copy(update={"encoder": str(folder)}),
        encoder_lr=RATE,
        head_lr=1e-3,
        layer_decay=1.0,
        dropout=dropout_of(family),
        epochs=LONGER * base.training.epochs,
    )
    name = f"{architecture}, {family}, {state}"
    return member_arm(name, member, f"{architecture}, BERT, pre-trained")


STUDY = Study(
    title="Backbones pre-trained here: BERT, ALBERT, XLNet",
    full=Budget(pairs=1200, evaluation=2000, epochs=2),
    design=design,
    caption=(
        f"Fine-tuned for {LONGER} times the epochs. BERT: whole words masked; ALBERT: the same and "
        f"the order of two parts; XLNet: permutations. {NOTE}"
    ),
)
