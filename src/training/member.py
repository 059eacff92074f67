"""One piece of work: train a member on one fold, predict what it has not seen, or load it again."""

from pathlib import Path

import numpy as np
import pandas as pd
from accelerate import PartialState
from safetensors.torch import load_file, save_file

from ..config import MemberConfig
from ..files import atomic_path, write_json
from ..models.build import build_model, read_for
from .loop import autocast, train

WEIGHTS = "model.safetensors"


def piece_seed(member: MemberConfig, fold: int) -> int:
    """Every fold draws its own random numbers; the member's seed moves them all."""
    return member.seed + 7919 * fold


def train_piece(
    member: MemberConfig,
    fold: int,
    swap: float,
    training: pd.DataFrame,
    unseen: dict[str, pd.DataFrame],
    pretrained: Path,
    folder: Path,
    title: str,
) -> None:
    """Train on `training`, choose the epoch by `unseen["oof"]`, write weights and predictions.

    Args:
        training: pair frame, augmented.
        unseen: pair frames to predict by name; "oof" are the fold's own rows.
        folder: receives model.safetensors, history.json and, a name, `<name>.npy` (logits).
    """
    seed = piece_seed(member, fold)
    model, tokenizer = build_model(member, pretrained, seed)
    valid = unseen["oof"]
    checkpoint = folder / "checkpoint.safetensors"
    progress = train(
        model,
        read_for(member, training, tokenizer),
        training["label"].to_numpy(),
        read_for(member, valid, tokenizer),
        valid["label"].to_numpy(),
        member.training,
        swap=swap,
        seed=seed,
        checkpoint=checkpoint,
        title=title,
    )
    processes = PartialState()
    if processes.is_main_process:  # all hold the same weights; one writes them
        with atomic_path(folder / WEIGHTS) as temporary:
            save_file(model.state_dict(), temporary)
        logits = {"oof": progress.valid_logits.numpy()}
        for name in unseen.keys() - logits.keys():
            logits[name] = _predict(model, member, unseen[name], tokenizer)
        for name, values in logits.items():
            with atomic_path(folder / f"{name}.npy") as temporary:
                np.save(temporary, values)
        write_json(folder / "history.json", progress.history)
        checkpoint.unlink(missing_ok=True)
    processes.wait_for_everyone()


def predict_piece(
    member: MemberConfig, frame: pd.DataFrame, pretrained: Path, folder: Path
) -> np.ndarray:
    """Logits float64[P] of a pair frame under the weights in `folder`."""
    model, tokenizer = build_model(member, pretrained, seed=0)
    model.load_state_dict(load_file(folder / WEIGHTS))
    model.to(PartialState().device)
    return _predict(model, member, frame, tokenizer)


def _predict(model, member: MemberConfig, frame: pd.DataFrame, tokenizer) -> np.ndarray:
    device = model.encoder.word_embeddings.weight.device
    with autocast(device, member.training.precision):
        return model.predict(read_for(member, frame, tokenizer))
