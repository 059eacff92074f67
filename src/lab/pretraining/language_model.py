"""Load an encoder with the heads of its task, and say when a head is not worth continuing from."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn
from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerBase

from ...errors import UserError
from ...files import atomic_path, save_tensors
from .tasks import IGNORED, MaskedWords, model_class

MASK = "<mask>"
SAMPLE = 256  # questions that a head is tried on


def load(
    source: str | Path, dropout: float
) -> tuple[nn.Module, PreTrainedTokenizerBase, list[str]]:
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


def save(model: nn.Module, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write a model directory that `models.encoder.load_encoder` reads, heads included."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    tensors, seen = {}, set()
    for name, values in model.state_dict().items():
        if values.data_ptr() not in seen:  # tied weights are stored once
            seen.add(values.data_ptr())
            tensors[name] = values.detach().contiguous()
    with atomic_path(folder / "model.safetensors") as temporary:
        save_tensors(tensors, temporary)


def head_warning(
    name: str,
    missing: Sequence[str],
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[str],
) -> str | None:
    """What to tell the user of a masked-LM head that is missing or random; None where it is fine.

    Published checkpoints lack the head, or carry one that was never trained
    (hfl/chinese-roberta-wwm-ext-large). A head is called random when it predicts masked tokens no
    better than their frequencies do.
    """
    heads = [key for key in missing if "predictions" in key or "lm_head" in key or "lm_loss" in key]
    if heads:
        return (
            f"The checkpoint '{name}' has no masked-LM head ({heads[0]} and {len(heads) - 1} more "
            "are drawn at random): it will be trained from nothing, at first at the encoder's cost."
        )
    if model.config.model_type == "xlnet":
        return None
    loss, guess = head_loss(model, tokenizer, questions)
    if loss < guess:
        return None
    return (
        f"The masked-LM head of '{name}' looks random: its loss on the questions is {loss:.2f} "
        f"nats, guessing by frequency has {guess:.2f}. It will be trained from nothing, at first "
        "at the encoder's cost."
    )


@torch.no_grad()
def head_loss(
    model: nn.Module, tokenizer: PreTrainedTokenizerBase, questions: Sequence[str]
) -> tuple[float, float]:
    """Mean loss of the masked-LM head on a sample, and that of guessing by token frequency."""
    sample = list(questions[:SAMPLE])
    task = MaskedWords(sample, tokenizer, max_length=64)
    losses, tokens = [], []
    model.eval()
    torch.manual_seed(0)
    for length in np.unique(task.lengths):
        rows = np.flatnonzero(task.lengths == length)
        batch = task.collator([dict(vars(task.encoded[row])) for row in rows])
        labels = batch.pop("labels")
        if getattr(model.config, "type_vocab_size", 0) < 2:
            batch.pop("token_type_ids")
        output = model(**{name: values.to(model.device) for name, values in batch.items()})
        logits = output.prediction_logits if "prediction_logits" in output else output.logits
        chosen = labels != IGNORED
        log_probabilities = logits.float().log_softmax(-1).cpu()[chosen]
        losses.append(-log_probabilities.gather(1, labels[chosen][:, None]).squeeze(1))
        tokens.append(labels[chosen])
    counts = torch.bincount(torch.cat(tokens)).float()
    shares = counts[counts > 0] / counts.sum()
    return float(torch.cat(losses).mean()), float(-(shares * shares.log()).sum())
