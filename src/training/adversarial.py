"""Adversarial perturbation of the word embeddings.

FGM (Miyato, Dai & Goodfellow 2017, "Adversarial Training Methods for Semi-Supervised Text
Classification") takes one step of length ε along the normalised gradient. PGD (Madry et al. 2018,
"Towards Deep Learning Models Resistant to Adversarial Attacks") takes K smaller steps, each
followed by a projection onto the ball of radius ε. Both perturb the embedding table itself: a word
moves the same way wherever it stands in the batch. The norm is taken over the whole gradient.
"""

from collections.abc import Callable
from types import TracebackType

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from ..config import AdversarialConfig

# PGD's steps together are this many radii long, so that the edge of the ball is reached (Madry et
# al., section 5).
PGD_PATH = 2.5


class Perturbation:
    """A context in which rows of an embedding table are moved; leaving it restores them exactly.

    Only rows with a gradient are copied, moved and restored; the others are never written.
    Restoring happens also when the block raises.
    """

    def __init__(self, embedding: nn.Embedding, epsilon: float) -> None:
        self.weight, self.epsilon = embedding.weight, epsilon
        self._rows: Tensor | None = None

    def __enter__(self) -> "Perturbation":
        self._rows = None
        return self

    @torch.no_grad()
    def move(self, gradient: Tensor | None, step_size: float) -> None:
        """Move along `gradient` ([V, H]) by `step_size`, then project onto the ε-ball.

        The ball is around the original rows, its norm the Euclidean one over all of them
        together. A gradient that is absent, zero or not finite moves nothing.
        """
        if gradient is None:
            return
        if self._rows is None:
            self._rows = gradient.abs().amax(dim=1).nonzero().squeeze(1)
            self._original = self.weight[self._rows].clone()
            self.delta = torch.zeros_like(self._original)
        direction = gradient[self._rows].to(self.delta.dtype)
        norm = direction.norm()
        if not torch.isfinite(norm) or norm == 0:
            return
        self.delta += direction * (step_size / norm)
        size = self.delta.norm()
        if size > self.epsilon:
            self.delta *= self.epsilon / size
        self.weight[self._rows] = self._original + self.delta

    @torch.no_grad()
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._rows is not None:
            self.weight[self._rows] = self._original
            self._rows = None


def accumulate_gradient(
    compute_loss: Callable[[nn.Module], Tensor],
    model: nn.Module,
    embedding: nn.Embedding,
    settings: AdversarialConfig,
    accelerator: Accelerator,
) -> Tensor:
    """Add the gradient of the clean loss and, if asked, of the loss under attack to `.grad`.

    Args:
        compute_loss: the batch's scalar loss under a given (wrapped or bare) model.
        model: the model as `accelerator.prepare` returned it.
        embedding: the bare model's word embeddings.
        settings: which attack; FGM is PGD with one step of length ε.

    Returns:
        The clean loss, detached.

    The first step of an attack reuses the clean pass's gradient. PGD's inner steps need the
    gradient of the embeddings alone, so they skip the weight gradients of all layers: K = 3
    costs 3⅓ clean steps instead of 4.
    """
    if settings.method == "none":
        loss = compute_loss(model)
        accelerator.backward(loss)
        return loss.detach()
    # Under gradient accumulation `.grad` already holds earlier batches: attack along this one.
    weight = embedding.weight
    earlier, weight.grad = weight.grad, None
    loss = compute_loss(model)
    accelerator.backward(loss)
    clean = weight.grad
    radius = settings.epsilon * _word_length(weight, clean)
    steps, step = (
        (settings.steps, PGD_PATH / settings.steps) if settings.method == "pgd" else (1, 1)
    )
    with Perturbation(embedding, radius) as attack:
        attack.move(
            _random_direction(clean) if settings.method == "noise" else clean, step * radius
        )
        for _ in range(steps - 1):
            gradient = _embedding_gradient(compute_loss, model, weight, accelerator)
            attack.move(gradient, step * radius)
        accelerator.backward(compute_loss(model))
    if earlier is not None:
        weight.grad = earlier if weight.grad is None else weight.grad + earlier
    return loss.detach()


@torch.no_grad()
def _word_length(weight: Tensor, gradient: Tensor | None) -> float:
    """The mean norm of the rows that the batch uses: the unit of ε, which differs by encoder.

    Word vectors are 1.6 long in E5 and 9.1 in the n-gram encoder.
    """
    if gradient is None:
        return 0.0
    return weight[gradient.any(dim=1)].norm(dim=1).mean().item()


def _random_direction(gradient: Tensor | None) -> Tensor | None:
    """Gaussian noise on the rows that the batch uses."""
    if gradient is None:
        return None
    return torch.randn_like(gradient) * gradient.any(dim=1, keepdim=True)


def _embedding_gradient(
    compute_loss: Callable[[nn.Module], Tensor],
    model: nn.Module,
    weight: Tensor,
    accelerator: Accelerator,
) -> Tensor | None:
    if not weight.requires_grad:
        return None
    bare = accelerator.unwrap_model(model)
    (gradient,) = torch.autograd.grad(compute_loss(bare), weight)
    return accelerator.reduce(gradient, reduction="mean")
