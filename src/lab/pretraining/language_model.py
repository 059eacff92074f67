"""Load an encoder with the heads of its task, and say when a head is not worth continuing from."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from scipy.stats import entropy
from torch.nn import functional
from transformers import AutoConfig, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from ...errors import UserError
from ...files import atomic_path, save_tensors
from .tasks import IGNORED, MaskedWords, model_class

MASK = "<mask>"
SAMPLE = 256  # questions that a head is tried on


def load(
    source: str | Path, dropout: float
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, list[str]]:
    """Model with heads, tokenizer, and the parameters that the checkpoint does not have.

    A tokenizer without a mask token (E5's) gets one, and the model a row for it.

    Raises:
        UserError: the directory or the hub's model cannot be loaded as a language model.
    """
    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
        names = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout")
        config.update({name: dropout for name in names if hasattr(config, name)})
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
        model, report = model_class(config.model_type).from_pretrained(
            source,
            config=config,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    except (OSError, ValueError, KeyError) as error:
        raise UserError(
            f"{source} cannot be pre-trained: {str(error).splitlines()[0]} Name an encoder that "
            "transformers can load with a language-model head."
        ) from error
    if tokenizer.mask_token is None:
        tokenizer.add_special_tokens({"mask_token": MASK})
        model.resize_token_embeddings(max(len(tokenizer), config.vocab_size))
    return model, tokenizer, sorted(report["missing_keys"])


def save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write a model directory that `models.registry.load_encoder` reads, heads included."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    distinct: dict[int, tuple[str, torch.Tensor]] = {}
    for name, values in model.state_dict().items():  # tied weights are stored once
        distinct.setdefault(values.data_ptr(), (name, values.detach().contiguous()))
    with atomic_path(folder / "model.safetensors") as temporary:
        save_tensors(dict(distinct.values()), temporary)


def head_warning(
    name: str,
    missing: Sequence[str],
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[str],
) -> str | None:
    """What to tell the user of a masked-LM head that is missing or random; None where it is fine.

    Published checkpoints lack it, or carry one that was never trained (as does
    hfl/chinese-roberta-wwm-ext-large): it predicts masked tokens no better than their frequencies.
    """
    heads = [key for key in missing if "predictions" in key or "lm_head" in key or "lm_loss" in key]
    cost = "t will be trained from nothing, at first at the encoder's cost."
    if heads:
        return (
            f"The checkpoint '{name}' has no masked-LM head ({heads[0]} and {len(heads) - 1} more "
            f"are drawn at random): i{cost}"
        )
    if model.config.model_type == "xlnet":
        return None
    loss, guess = head_loss(model, tokenizer, questions)
    if loss < guess:
        return None
    return (
        f"The masked-LM head of '{name}' looks random: its loss on the questions is {loss:.2f} "
        f"nats, guessing by frequency has {guess:.2f}. I{cost}"
    )


@torch.no_grad()
def head_loss(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, questions: Sequence[str]
) -> tuple[float, float]:
    """Mean loss of the masked-LM head on a sample, and that of guessing by token frequency."""
    task = MaskedWords(questions[:SAMPLE], tokenizer, max_length=64)
    losses, tokens = [], []
    model.eval()
    torch.manual_seed(0)
    for length in np.unique(task.lengths):
        rows = np.flatnonzero(task.lengths == length)
        _, logits, labels = task.predict(model, rows, [0] * len(rows))
        chosen = labels != IGNORED
        losses.append(
            functional.cross_entropy(logits[chosen].float(), labels[chosen], reduction="none")
        )
        tokens.append(labels[chosen])
    return float(torch.cat(losses).mean()), float(entropy(torch.cat(tokens).bincount().cpu()))
