"""Train a network for a trial, and ask the trained one."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ....config import MemberConfig
from ....models.api import PairModel, Tokenizer
from ....models.registry import build_model, read_pairs_for
from ....report.scores import accuracy_by_threshold
from ....search.encode import Reading, encode
from ....training.fold_model import FoldModel, fit
from ....training.loop import Conduct, TrainingFailed, log_loss
from ....training.objective import Objective
from .arm import Outcome, Trial
from .clock import now

SWAP = 0.5  # chance that a cross-encoder reads a pair reversed; a siamese network cannot tell
Build = Callable[..., tuple[PairModel, Tokenizer]]  # of (member, pretrained folder, seed)


@dataclass(frozen=True)
class Fitted(FoldModel):
    """A trained network with what is known of its training."""

    training: pd.DataFrame
    history: list[dict[str, float]]
    seconds: float
    failed: bool = False

    def timed(self, frame: pd.DataFrame) -> tuple[np.ndarray, float]:
        """The logits of `predict`, and how many distinct questions a second were encoded and
        scored (see `clock`)."""
        pairs = read_pairs_for(self.member, frame, self.tokenizer)
        started = now()
        logits = self.model.predict(pairs)
        questions = len({*frame["query1"], *frame["query2"]})
        return logits, questions / (now() - started)

    def vectors(self, questions: Sequence[str]) -> np.ndarray:
        """A bi-encoder's vectors of length 1, float32[n, H]."""
        return encode(self.model.encoder, self.tokenizer, questions, Reading.of(self.member))

    def cosines(self, frame: pd.DataFrame) -> np.ndarray:
        """Cosine similarity float64[P] of a bi-encoder's two question vectors."""
        left, right = (self.vectors(frame[name].tolist()) for name in ("query1", "query2"))
        cosines = np.einsum("ph,ph->p", left, right).astype(np.float64)
        # Of a training that failed the weights may be NaN; its answers are scored all the same.
        return np.nan_to_num(cosines, nan=0.0)

    @property
    def parameters(self) -> int:
        """Numbers in encoder and head; what two layers share counts once."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def trained_parameters(self) -> int:
        """Those of them that training may change; of word vectors it changes those that occur."""
        return sum(p.numel() for p in self.model.parameters() if p.requires_grad)

    def outcome(self, scores: dict[str, np.ndarray], **facts: float) -> Outcome:
        """The trial's outcome with the facts that every table shows."""
        common = {
            "train_seconds": self.seconds,
            "parameters": self.parameters,
            "failed": float(self.failed),
        }
        return Outcome(scores, self.training, self.history, common | facts)


def train_member(
    trial: Trial,
    member: MemberConfig,
    *,
    training: pd.DataFrame | None = None,
    build: Build = build_model,
    objective: Callable | None = None,
    criterion: Callable[[np.ndarray, np.ndarray], float] = log_loss,
    swap: float = SWAP,
) -> Fitted:
    """Train `member` on the trial's training part.

    Training that fails (a collapse to one class) is a finding, not an error: the network is scored
    as it is, and the fact `failed` says so. A trial that is killed starts again from its beginning,
    so that its seconds are those of one uninterrupted training.

    Args:
        training: in place of the trial's own training part (augmentation).
        objective: the loss of a batch; by default the member's own.
        criterion: chooses the epoch on the validation part, see `training.loop.Conduct`.
        swap: chance that a cross-encoder reads a pair reversed.
    """
    training = trial.parts.training if training is None else training
    model, tokenizer = build(member, trial.pretrained, trial.seed)
    model.precision = member.training.precision
    swap = swap if member.architecture == "cross" else 0.0
    conduct = Conduct(trial.title, trial.seed, swap, criterion=criterion)
    history: list[dict[str, float]] = []
    failed, started = False, now()
    try:
        network = FoldModel(model, tokenizer, member)
        validation = trial.parts.validation
        history, _ = fit(network, training, validation, objective or Objective.of(member), conduct)
    except TrainingFailed as error:
        print(f"  ! {error}", file=sys.stderr, flush=True)
        failed = True
    return Fitted(model, tokenizer, member, training, history, now() - started, failed)


def tuned_margin(fitted_on: tuple[np.ndarray, np.ndarray], scores: np.ndarray) -> np.ndarray:
    """`scores` minus the threshold that is most accurate on other pairs.

    Args:
        fitted_on: labels and scores of the validation part. Where several thresholds are equally
            good, the middle of the longest such stretch is taken.

    Returns:
        float64[P], above 0 where the pair is taken for the same question.
    """
    thresholds, accuracies = accuracy_by_threshold(*fitted_on)
    # Between one threshold and the next nothing changes; below the first and beyond the last
    # there is only "all the same" and "all different".
    upper = np.append(thresholds[1:], thresholds[-1] + 1e-6)
    lower = np.maximum(thresholds, thresholds[1] - 1e-6 if len(thresholds) > 1 else 0.0)
    best = np.flatnonzero(accuracies == accuracies.max())
    widest = best[np.argmax(upper[best] - lower[best])]
    return scores - (lower[widest] + upper[widest]) / 2
