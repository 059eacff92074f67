"""One piece of work: train a member on one fold, predict what it has not seen, or load it again."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from accelerate import PartialState
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from ..config import MemberConfig
from ..files import atomic_path, read_json, save_tensors, write_json
from ..models.registry import build_model, read_for
from .checkpoint import Progress, under
from .loop import autocast, log_loss, train
from .objective import Objective
from .vocabulary import cut_vocabulary, occurring_ids

WEIGHTS, SETTINGS = "model.safetensors", "member.json"


def piece_seed(member: MemberConfig, fold: int) -> int:
    """Every fold draws its own random numbers; the member's seed moves them all."""
    return member.seed + 7919 * fold


def fit(
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    member: MemberConfig,
    training: pd.DataFrame,
    valid: pd.DataFrame,
    objective: Callable[..., Tensor],
    *,
    swap: float,
    seed: int,
    checkpoint: Path | None,
    title: str,
    criterion: Callable[[np.ndarray, np.ndarray], float] = log_loss,
) -> Progress:
    """Train `model` on the pair frame `training`; see `loop.train`.

    Of the word embeddings only the rows that occur in `training` or `valid` are trained.
    """
    pairs, valid_pairs = (read_for(member, frame, tokenizer) for frame in (training, valid))
    occurring = occurring_ids(tokenizer, pairs.vocabulary, valid_pairs.vocabulary)
    model.to(PartialState().device)  # before the table is cut: the cut lives where the table is
    with cut_vocabulary(model.encoder.word_embeddings, occurring):
        return train(
            model,
            pairs,
            training["label"].to_numpy(),
            valid_pairs,
            valid["label"].to_numpy(),
            member.training,
            objective,
            swap=swap,
            seed=seed,
            checkpoint=checkpoint,
            title=title,
            criterion=criterion,
        )


def train_piece(
    member: MemberConfig,
    fold: int,
    swap: float,
    training: pd.DataFrame,
    unseen: dict[str, pd.DataFrame],
    pretrained: Path,
    folder: Path,
    title: str,
    start: Path | None = None,
) -> None:
    """Train on `training`, choose the epoch by `unseen["oof"]`, write weights and predictions.

    Args:
        training: pair frame, augmented.
        unseen: pair frames to predict by name; "oof" are the fold's own rows.
        folder: receives model.safetensors, member.json (the settings, by which the weights are
            loaded again), history.json and, a name, `<name>.npy` (logits).
        start: weights of another member, trained on the same rows; its encoder is trained on.
    """
    seed = piece_seed(member, fold)
    model, tokenizer = build_model(member, pretrained, seed)
    if start is not None:
        model.encoder.load_state_dict(under("encoder.", load_file(start)))
    checkpoint = folder / "checkpoint.safetensors"
    progress = fit(
        model,
        tokenizer,
        member,
        training,
        unseen["oof"],
        Objective(member.training.label_smoothing, member.contrastive),
        swap=swap,
        seed=seed,
        checkpoint=checkpoint,
        title=title,
    )
    processes = PartialState()
    if processes.is_main_process:  # all hold the same weights; one writes them
        with atomic_path(folder / WEIGHTS) as temporary:
            save_tensors(model.state_dict(), temporary)
        logits = {"oof": progress.valid_logits.numpy()}
        for name in unseen.keys() - logits.keys():
            logits[name] = predict(model, tokenizer, member, unseen[name])
        for name, values in logits.items():
            with atomic_path(folder / f"{name}.npy") as temporary:
                np.save(temporary, values)
        write_json(folder / "history.json", progress.history)
        write_json(folder / SETTINGS, member.model_dump(mode="json"))
        checkpoint.unlink(missing_ok=True)
    processes.wait_for_everyone()


def load_piece(folder: Path, pretrained: Path):
    """The trained network in `folder`, its tokenizer and the settings it was trained with."""
    member = MemberConfig(**read_json(folder / SETTINGS))
    model, tokenizer = build_model(member, pretrained, seed=0)
    model.load_state_dict(load_file(folder / WEIGHTS))
    return model.to(PartialState().device).eval(), tokenizer, member


def predict_piece(frame: pd.DataFrame, pretrained: Path, folder: Path) -> np.ndarray:
    """Logits float64[P] of a pair frame by the network in `folder`."""
    model, tokenizer, member = load_piece(folder, pretrained)
    return predict(model, tokenizer, member, frame)


def predict(
    model: nn.Module, tokenizer: PreTrainedTokenizerBase, member: MemberConfig, frame: pd.DataFrame
) -> np.ndarray:
    """Logits float64[P] of a pair frame, in the member's precision."""
    device = model.encoder.word_embeddings.weight.device
    with autocast(device, member.training.precision):
        return model.predict(read_for(member, frame, tokenizer))
