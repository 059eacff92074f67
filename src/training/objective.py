"""What training minimises: the cross-entropy of the pairs, and further terms by name and weight.

A new term is a function like `contrastive_loss`, in a file of its own, and a line in `TERMS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.nn import functional

from ..config import MemberConfig
from ..errors import UserError
from ..fingerprint import Registry
from ..models.api import Scored
from .contrastive import contrastive_loss

# The mean loss of a batch: (what the network says, the batch, labels float[P]) → scalar.
Term = Callable[[Scored, Any, Tensor], Tensor]
TERMS: Registry[str, Term] = {"contrastive": contrastive_loss}


@dataclass(frozen=True)
class Objective:
    """A loss over the pairs of a batch, summed.

    Attributes:
        label_smoothing: a label counts as this much less than 1, or more than 0.
        weights: of the terms of `TERMS` beside the cross-entropy.
    """

    label_smoothing: float = 0.0
    weights: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, member: MemberConfig) -> Objective:
        """The objective of a member's settings.

        Raises:
            UserError: there is no term of a name in `losses`.
        """
        for name in member.losses:
            if name not in TERMS:
                known = ", ".join(TERMS)
                raise UserError(f"There is no loss '{name}' (members.NAME.losses): use {known}.")
        return cls(member.training.label_smoothing, member.losses)

    @property
    def code(self) -> list[Term]:
        """The registered terms that it uses, for `Step.code`."""
        return [TERMS[name] for name in self.weights]

    def __call__(self, scored: Scored, batch: Any, labels: Tensor) -> Tensor:
        """Scalar loss, summed over the pairs; `labels` are float[P], 0 or 1."""
        goals = labels * (1 - 2 * self.label_smoothing) + self.label_smoothing
        loss = functional.binary_cross_entropy_with_logits(
            scored.logits.float(), goals, reduction="sum"
        )
        for name, weight in self.weights.items():
            if weight:
                loss = loss + weight * len(labels) * TERMS[name](scored, batch, labels)
        return loss
