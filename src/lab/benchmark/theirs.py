"""sentence-transformers as a contender.

It is trained by the plain loop that its Trainer comes down to: shuffled batches, padded to the
longest question of each, bf16 by autocast, gradients clipped at 1, fused AdamW without decay of
biases and norms. The Trainer's book-keeping is left out, in the library's favour.
"""

from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss
from sentence_transformers.sentence_transformer.losses import SoftmaxLoss
from torch import Tensor, nn

from ...config import MemberConfig, TrainingConfig
from ...training.loop import autocast
from .turns import Work, counted_tokens, now

MAX_LENGTH = MemberConfig.model_fields["max_length"].default
BATCH_PAIRS = TrainingConfig.model_fields["batch_pairs"].default
PREDICTION_BATCH = 64  # faster than its default of 32 on this project's short questions


class Rival(ABC):
    """What both of its architectures share: the training loop."""

    model: SentenceTransformer | CrossEncoder
    loss: nn.Module

    def __init__(self) -> None:
        decayed = [p for p in self.loss.parameters() if p.ndim > 1]
        plain = [p for p in self.loss.parameters() if p.ndim <= 1]
        groups = [{"params": decayed}, {"params": plain, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=2e-5, weight_decay=0.01, fused=True)
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


class RivalSiamese(Rival):
    """SentenceTransformer with mean pooling, SoftmaxLoss over (u, v, |u − v|)."""

    def __init__(self, directory: Path) -> None:
        self.model = SentenceTransformer(str(directory))
        self.model.max_seq_length = MAX_LENGTH
        width = self.model.get_embedding_dimension()
        self.loss = SoftmaxLoss(self.model, width, num_labels=2)
        super().__init__()

    def compute_loss(self, batch: pd.DataFrame, labels: Tensor) -> Tensor:
        columns = [self.model.preprocess(batch[name].tolist()) for name in ("query1", "query2")]
        return self.loss([_to(column, self.model.device) for column in columns], labels)

    def answer(self, rows: pd.DataFrame) -> None:
        texts = rows["query1"].tolist() + rows["query2"].tolist()
        vectors = self.model.encode(
            texts, batch_size=PREDICTION_BATCH, convert_to_tensor=True, show_progress_bar=False
        )
        u, v = vectors.float().chunk(2)
        self.loss.classifier(torch.cat([u, v, (u - v).abs()], dim=1)).argmax(dim=1).cpu()


class RivalCross(Rival):
    """CrossEncoder with BinaryCrossEntropyLoss.

    `both_orders`: predict a pair in both orders, as this project does, so that the answer does
    not depend on the order; the library's users read it once.
    """

    def __init__(self, directory: Path, both_orders: bool = False) -> None:
        self.model = CrossEncoder(str(directory), num_labels=1, max_length=2 * MAX_LENGTH)
        self.loss = BinaryCrossEntropyLoss(self.model)
        self.both_orders = both_orders
        super().__init__()

    def compute_loss(self, batch: pd.DataFrame, labels: Tensor) -> Tensor:
        return self.loss([batch["query1"].tolist(), batch["query2"].tolist()], labels)

    def answer(self, rows: pd.DataFrame) -> None:
        pairs = list(zip(rows["query1"], rows["query2"], strict=True))
        if self.both_orders:
            pairs += [(second, first) for first, second in pairs]
        self.model.predict(pairs, batch_size=PREDICTION_BATCH, show_progress_bar=False)


def load_rival(architecture: str, directory: Path) -> Rival:
    """The library's "siamese" or "cross" architecture over the encoder in a model directory."""
    return RivalSiamese(directory) if architecture == "siamese" else RivalCross(directory)


def _to(features: dict, device: torch.device) -> dict:
    return {k: v.to(device) if isinstance(v, Tensor) else v for k, v in features.items()}


def _unpadded(arguments: tuple) -> int:
    return int(arguments[0]["attention_mask"].sum())
