"""sentence-transformers as a contender.

It is trained by the plain loop that its Trainer comes down to: shuffled batches, padded to the
longest question of each, bf16 by autocast, gradients clipped at 1, fused AdamW without decay of
biases and norms. The Trainer's book-keeping is left out, in the library's favour.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss
from sentence_transformers.sentence_transformer.losses import SoftmaxLoss
from sentence_transformers.util import batch_to_device
from torch import Tensor, nn

from ...config import MemberConfig, TrainingConfig
from ...models.precision import autocast
from ..pretraining.pretrain_loop import adamw
from .turns import Work, counted_tokens, now

MAX_LENGTH = MemberConfig.model_fields["max_length"].default
BATCH_PAIRS = TrainingConfig.model_fields["batch_pairs"].default
# Faster than the library's default of 32 on this project's short questions.
QUIETLY = {"batch_size": 64, "show_progress_bar": False}


class Theirs(ABC):
    """What both of its architectures share: the training loop."""

    def __init__(self, loss: SoftmaxLoss | BinaryCrossEntropyLoss) -> None:
        self.model, self.loss = loss.model, loss
        self.optimizer = adamw(loss, 2e-5)
        self.random = np.random.default_rng(0)

    def train(self, rows: pd.DataFrame, precision: str) -> Work:
        """An epoch over `rows`, tokenisation included as it is part of its batches."""
        self.loss.train()
        with counted_tokens(self.model[0], _unpadded, training=True) as tokens:
            started = now()
            order = self.random.permutation(len(rows))
            for start in range(0, len(rows), BATCH_PAIRS):
                batch = rows.iloc[order[start : start + BATCH_PAIRS]]
                labels = torch.tensor(batch["label"].to_numpy(), device=self.model.device)
                with autocast(self.model.device, precision):
                    loss = self.compute_loss(batch, labels)
                loss.backward()
                nn.utils.clip_grad_norm_(self.loss.parameters(), 1.0)
                self.optimizer.step()
                self.optimizer.zero_grad(set_to_none=True)
            return Work(len(rows), sum(tokens), now() - started)

    def predict(self, rows: pd.DataFrame, precision: str) -> Work:
        """Answers for `rows`, tokenisation included."""
        self.loss.eval()
        with (
            counted_tokens(self.model[0], _unpadded, training=False) as tokens,
            torch.inference_mode(),
            autocast(self.model.device, precision),
        ):
            started = now()
            self.answer(rows)
            return Work(len(rows), sum(tokens), now() - started)

    @abstractmethod
    def compute_loss(self, batch: pd.DataFrame, labels: Tensor) -> Tensor:
        """The mean loss of a batch."""

    @abstractmethod
    def answer(self, rows: pd.DataFrame) -> None:
        """Decide pairs."""


class TheirSiamese(Theirs):
    """SentenceTransformer with mean pooling, SoftmaxLoss over (u, v, |u − v|)."""

    def __init__(self, directory: Path) -> None:
        model = SentenceTransformer(str(directory))
        model.max_seq_length = MAX_LENGTH
        super().__init__(SoftmaxLoss(model, model.get_embedding_dimension(), num_labels=2))

    def compute_loss(self, batch: pd.DataFrame, labels: Tensor) -> Tensor:
        columns = [self.model.preprocess(batch[name].tolist()) for name in ("query1", "query2")]
        return self.loss([batch_to_device(c, self.model.device) for c in columns], labels)

    def answer(self, rows: pd.DataFrame) -> None:
        texts = [*rows["query1"], *rows["query2"]]
        u, v = self.model.encode(texts, convert_to_tensor=True, **QUIETLY).float().chunk(2)
        self.loss.classifier(torch.cat([u, v, (u - v).abs()], dim=1)).argmax(dim=1).cpu()


class TheirCross(Theirs):
    """CrossEncoder with BinaryCrossEntropyLoss."""

    def __init__(self, directory: Path) -> None:
        model = CrossEncoder(str(directory), num_labels=1, max_length=2 * MAX_LENGTH)
        super().__init__(BinaryCrossEntropyLoss(model))

    def compute_loss(self, batch: pd.DataFrame, labels: Tensor) -> Tensor:
        return self.loss([batch["query1"].tolist(), batch["query2"].tolist()], labels)

    def answer(self, rows: pd.DataFrame) -> None:
        self.model.predict(list(zip(rows["query1"], rows["query2"], strict=True)), **QUIETLY)

    def predict_both_orders(self, rows: pd.DataFrame, precision: str) -> Work:
        """As this project does it; the library's users read a pair once."""
        turned = rows.rename(columns={"query1": "query2", "query2": "query1"})
        return self.predict(pd.concat([rows, turned]), precision)._replace(pairs=len(rows))


THEIR: dict[str, Callable[[Path], Theirs]] = {"siamese": TheirSiamese, "cross": TheirCross}


def _unpadded(arguments: tuple) -> int:
    return int(arguments[0]["attention_mask"].sum())
