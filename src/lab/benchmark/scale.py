"""How much is measured, and what all measurements share."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch
from omegaconf import OmegaConf

from ...config import Settings
from .ours import Ours


class Scale(Settings):
    """How much is measured, see scales.yaml."""

    encoder: str
    rounds: int
    train_pairs: int
    predict_pairs: int
    growth_pairs: int
    accuracy_pairs: int
    memory: tuple[tuple[str, str], ...]
    large: Mapping[str, int]
    large_anywhere: bool
    stages: tuple[str, ...]

    @classmethod
    def load(cls, name: str) -> "Scale":
        """ "full" or "quick"."""
        content = OmegaConf.load(Path(__file__).with_name("scales.yaml"))
        scales: dict = OmegaConf.to_container(content)  # type: ignore[assignment]
        return cls(**scales[name])


@dataclass(frozen=True)
class Bench:
    """What all measurements share.

    Attributes:
        frame, dev: labelled pairs, by which everything is measured; there may be no dev.
        precisions: the last one is the fastest.
        peaks: FLOP a second of a matrix product, by precision.
        ours: this project's architectures over the encoder.
    """

    scale: Scale
    frame: pd.DataFrame
    dev: pd.DataFrame | None
    pretrained: Path
    device: torch.device
    precisions: list[str]
    peaks: Mapping[str, float]
    ours: Mapping[str, Ours]

    @property
    def fastest(self) -> str:
        """In which everything is measured that is measured in one precision only."""
        return self.precisions[-1]

    @property
    def directory(self) -> Path:
        """The encoder's model directory."""
        return self.pretrained / self.scale.encoder
