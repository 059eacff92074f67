"""A fold model: one member, trained on one fold's training part, written, and loaded again."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
import torch
from accelerate import PartialState
from safetensors.torch import load_file
from torch import Tensor

from ..config import MemberConfig
from ..data.pairs import read_pairs
from ..errors import UserError
from ..files import atomic_path, read_json, save_array, save_tensors, write_json
from ..models.api import PairModel, Tokenizer
from ..models.published import origin
from ..models.registry import build_model, find_source, read_pairs_for
from .checkpoint import History, under
from .learned import CONSTANT, has_learned, once_more
from .loop import Conduct, LabelledPairs, TrainingFailed, train
from .objective import Objective
from .vocabulary import cut_vocabulary, occurring_ids

T = TypeVar("T")

WEIGHTS, SETTINGS = "model.safetensors", "member.json"


@dataclass(frozen=True)
class FoldFiles:
    """What a fold model is made from.

    Attributes:
        part: pair table of the training part.
        table: pair table of all folds; its rows of `fold` are predicted, out of fold.
        folds: file with int64[P], the fold of every row of `table`.
    """

    part: Path
    table: Path
    folds: Path
    fold: int

    @property
    def paths(self) -> list[Path]:
        """All files."""
        return [self.part, self.table, self.folds]

    def own_rows(self) -> pd.DataFrame:
        """The pair frame of the fold's own rows, on which its model is not trained."""
        numbers = np.load(self.folds, allow_pickle=False)
        table = read_pairs(self.table, labelled=True).frame
        return table[numbers == self.fold].reset_index(drop=True)


@dataclass(frozen=True)
class FoldModel:
    """A trained network, its tokenizer and the settings it was trained with."""

    model: PairModel
    tokenizer: Tokenizer
    member: MemberConfig

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Logits float64[P] of a pair frame, in the member's precision."""
        return self.model.predict(read_pairs_for(self.member, frame, self.tokenizer))


def fold_seed(member: MemberConfig, fold: int) -> int:
    """Every fold draws its own random numbers; the member's seed moves them all."""
    return member.seed + 7919 * fold


def fit(
    network: FoldModel,
    training: pd.DataFrame,
    valid: pd.DataFrame,
    objective: Callable[..., Tensor],
    conduct: Conduct,
) -> tuple[History, np.ndarray]:
    """Train a network on the pair frame `training`; arguments and result as of `loop.train`.

    Of the word embeddings only the rows that occur in `training` or `valid` are trained.
    """
    seen, held_out = (
        LabelledPairs(
            read_pairs_for(network.member, frame, network.tokenizer), frame["label"].to_numpy()
        )
        for frame in (training, valid)
    )
    occurring = occurring_ids(network.tokenizer, seen.pairs.vocabulary, held_out.pairs.vocabulary)
    # Before the table is cut: the cut lives where the table is.
    model = network.model.to(PartialState().device)
    with cut_vocabulary(model.encoder.word_embeddings, occurring):
        return train(model, seen, held_out, network.member.training, objective, conduct)


def train_fold_model(
    member: MemberConfig,
    files: FoldFiles,
    swap: float,
    pretrained: Path,
    start: Path | None,
    folder: Path,
) -> None:
    """Train on a fold's training part and write the weights.

    All epochs are trained: the fold's own rows, which score the model, choose nothing. Where memory
    runs out it begins again with half as many pairs in a batch, twice accumulated. Where nothing
    was learned it begins again, once, with another seed and half the learning rates.

    Args:
        swap: chance that a pair is read in reverse order.
        start: weights of another member, trained on the same rows; its encoder is trained on.
        folder: receives model.safetensors, member.json (the settings, by which the weights are
            loaded again, what the encoder was loaded from, and whether anything was learned),
            history.json, and oof.npy, the logits of the fold's own rows.

    Raises:
        TrainingFailed: the second time, too, the loss is not finite or all answers are the same.
    """
    title = f"{folder.parent.name} fold {files.fold}"
    part, own = read_pairs(files.part, labelled=True).frame, files.own_rows()
    majority = int(part["label"].mean() > 0.5)
    checkpoints = [folder / f"checkpoint{mark}.safetensors" for mark in ("", "-again")]

    def fit_fold(tried: MemberConfig) -> tuple[FoldModel, History, np.ndarray]:
        seed = fold_seed(tried, files.fold)
        model, tokenizer = build_model(tried, pretrained, seed)
        network = FoldModel(model, tokenizer, tried)
        if start is not None:
            network.model.encoder.load_state_dict(under("encoder.", load_file(start)))
        conduct = Conduct(title, seed, swap, checkpoint)
        return network, *fit(network, part, own, Objective.of(tried), conduct)

    for attempt, checkpoint in zip((member, once_more(member)), checkpoints, strict=True):
        is_last = checkpoint is checkpoints[-1]
        try:
            network, history, logits = in_memory(attempt, fit_fold, title)
        except TrainingFailed as error:
            if is_last:
                raise
            print(f"  ! {error}", file=sys.stderr)
            learned = False
        else:
            learned = has_learned(own, logits, majority)
        if learned:
            break
        then = "" if is_last else ": again, with another seed and half the rates"
        print(f"  ! {title}: nothing was learned over {CONSTANT[majority]}{then}", file=sys.stderr)
    if PartialState().is_main_process:  # all hold the same weights; one writes them
        loaded = origin(Path(find_source(member.encoder, pretrained)))
        facts = {"loaded": loaded, "learned_nothing_over": None if learned else CONSTANT[majority]}
        _write(folder, network, facts, history, logits)
        for checkpoint in checkpoints:
            checkpoint.unlink(missing_ok=True)
    PartialState().wait_for_everyone()


def _write(
    folder: Path, network: FoldModel, facts: dict, history: History, logits: np.ndarray
) -> None:
    with atomic_path(folder / WEIGHTS) as temporary:
        save_tensors(network.model.compact_state(), temporary)
    save_array(folder / "oof.npy", logits)
    write_json(folder / "history.json", history)
    write_json(folder / SETTINGS, {"member": network.member.model_dump(mode="json")} | facts)


def in_memory(member: MemberConfig, work: Callable[[MemberConfig], T], title: str) -> T:
    """Do `work`; where memory runs out, again with batches half as large, twice accumulated.

    The optimizer then takes the same steps, from half as many pairs at a time.

    Raises:
        UserError: it does not fit either, or there are other processes, which train along.
    """
    for tried in (member, _in_smaller_batches(member)):
        try:
            return work(tried)
        except torch.OutOfMemoryError:
            if PartialState().num_processes > 1:
                break  # the others are in the middle of a step
            print(f"── {title}: out of memory with {_batches(tried)}", file=sys.stderr)
        torch.cuda.empty_cache()
    raise UserError(
        f"{title}: {_batches(tried)} do not fit into the memory. Set "
        "training.gradient_checkpointing=true, or lower training.batch_pairs and raise "
        "training.accumulation by as much."
    )


def _in_smaller_batches(member: MemberConfig) -> MemberConfig:
    pairs, accumulation = member.training.batch_pairs, member.training.accumulation
    halved = {"batch_pairs": max(2, pairs // 2), "accumulation": 2 * accumulation}
    return member.model_copy(update={"training": member.training.model_copy(update=halved)})


def _batches(member: MemberConfig) -> str:
    return f"{member.training.batch_pairs} pairs a batch × {member.training.accumulation}"


def read_member(folder: Path) -> MemberConfig:
    """The settings with which a fold model was trained."""
    return MemberConfig(**read_json(folder / SETTINGS)["member"])


def load_fold_model(folder: Path, pretrained: Path) -> FoldModel:
    """The fold model that `train_fold_model` has written into `folder`."""
    member = read_member(folder)
    model, tokenizer = build_model(member, pretrained, seed=0)
    model.load_state_dict(load_file(folder / WEIGHTS))
    return FoldModel(model.to(PartialState().device).eval(), tokenizer, member)
