"""Attack a trained network through its word embeddings."""

import numpy as np
import pandas as pd
import torch
from torch.nn import functional

from ....models.registry import read_pairs_for
from ....training.adversarial import Perturbation
from ....training.batches import epoch_batches
from ..trials.fitted import Fitted

BATCH_PAIRS = 64
STEPS = 3


def attacked_logits(fitted: Fitted, frame: pd.DataFrame, radius: float) -> np.ndarray:
    """Logits float64[P] of labelled pairs while an adversary moves the word embeddings.

    For every batch projected gradient ascent on the cross-entropy of the true labels (Madry et
    al. 2018), `STEPS` steps within the ball of `radius` around the embedding table, the norm taken
    over the whole table as in training. Batches are the same for every network that reads the
    same pairs; the weights are left as they were.
    """
    model, embedding = fitted.model.eval(), fitted.model.encoder.word_embeddings
    device, weight = embedding.weight.device, embedding.weight
    was_trained = weight.requires_grad
    weight.requires_grad_(True)
    pairs = read_pairs_for(fitted.member, frame, fitted.tokenizer)
    labels = torch.tensor(frame["label"].to_numpy(), dtype=torch.float32, device=device)
    batches = epoch_batches(pairs.groups, pairs.lengths, BATCH_PAIRS, np.random.default_rng(0))
    logits = np.empty(len(frame))
    for rows in batches:
        batch = pairs.collate(rows, np.zeros(len(rows), bool)).to(device)

        def forward(batch=batch):
            return model(batch).logits.float()

        with Perturbation(embedding, radius) as attack:
            for _ in range(STEPS):
                loss = functional.binary_cross_entropy_with_logits(forward(), labels[rows])
                (gradient,) = torch.autograd.grad(loss, weight)
                attack.move(gradient, 2 * radius / STEPS)
            with torch.no_grad():
                logits[rows] = forward().double().cpu().numpy()
    weight.requires_grad_(was_trained)
    return logits
