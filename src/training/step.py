"""The gradient of one batch: clean, and clean + adversarial."""

from collections.abc import Callable

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from ..config import AdversarialConfig
from .adversarial import Perturbation


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
    with Perturbation(embedding, settings.epsilon) as attack:
        if settings.method == "fgm":
            attack.move(clean, settings.epsilon)
        elif settings.method == "noise":
            attack.move(_random_direction(clean), settings.epsilon)
        else:
            attack.move(clean, settings.step_size)
            for _ in range(settings.steps - 1):
                gradient = _embedding_gradient(compute_loss, model, weight, accelerator)
                attack.move(gradient, settings.step_size)
        accelerator.backward(compute_loss(model))
    if earlier is not None:
        weight.grad = earlier if weight.grad is None else weight.grad + earlier
    return loss.detach()


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
