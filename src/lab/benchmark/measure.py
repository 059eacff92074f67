"""Everything in one run."""

import importlib.metadata
import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from accelerate import PartialState
from tqdm import tqdm

from ...config import Config
from ...data.pairs import read_pairs
from ...data.prepare import find_sources
from ...files import write_json
from .benchmark_figure import draw
from .contest import compare
from .growth import growth
from .hardware import describe, precisions, product_peak
from .large_encoder import LARGE, large_encoder
from .ours import Own
from .shortcut_accuracy import accuracy
from .step_costs import attack_costs, step_parts
from .theirs import RivalSiamese
from .training_memory import training_memory
from .turns import Spread, alternate
from .waiting import stage_times, start_up

ARCHITECTURES = ("siamese", "cross")
_LIBRARIES = ("torch", "transformers", "sentence-transformers")


@dataclass(frozen=True)
class Scale:
    """How much is measured.

    Attributes:
        train_pairs, predict_pairs: of one turn.
        growth_pairs: of one turn at factor 1.
        accuracy_pairs: that a training is compared on, see `accuracy`.
        memory: architectures and precisions whose peak memory is measured.
        large: shape of the encoder that is measured on a GPU.
        large_anywhere: measure it without a GPU, too.
        stages: settings of the pipeline run whose stages are timed.
    """

    encoder: str = "e5-small-zh"
    rounds: int = 5
    train_pairs: int = 128
    predict_pairs: int = 192
    growth_pairs: int = 64
    accuracy_pairs: int = 640
    memory: tuple[tuple[str, str], ...] = tuple(product(ARCHITECTURES, ("fp32", "bf16")))
    large: tuple[tuple[str, int], ...] = tuple(LARGE.items())
    large_anywhere: bool = False
    stages: tuple[str, ...] = ()


FULL = Scale()
QUICK = Scale(
    encoder="tiny",
    rounds=2,
    train_pairs=32,
    predict_pairs=32,
    growth_pairs=16,
    accuracy_pairs=32,
    memory=(("siamese", "fp32"),),
    large=(
        ("hidden_size", 32),
        ("num_hidden_layers", 1),
        ("num_attention_heads", 2),
        ("intermediate_size", 64),
        ("vocab_size", 4000),
    ),
    large_anywhere=True,
    stages=("split.folds=2", "training.epochs=1", "tune.trials=8"),
)


def measure(config: Config, scale: Scale, folder: Path) -> dict[str, Any]:
    """Measure, write `bench.json` and `bench.svg` into `folder`, return the numbers.

    What is measured so far is in `bench.partial.json` after every part, so that one that fails
    loses nothing but itself and what comes after it, and no earlier result.

    The pairs are those of the configuration's data directory, else the sample.

    Raises:
        UserError: the data cannot be read, or the encoder cannot be made.
    """
    began = time.perf_counter()
    device = PartialState().device
    sources = find_sources(config.data.model_copy(update={"mirror": False}))
    frame = read_pairs(sources.train, labelled=True).frame
    pretrained, kinds = config.paths.pretrained, precisions(device)
    fastest = kinds[-1]
    own = {name: Own.load(name, scale.encoder, frame, pretrained) for name in ARCHITECTURES}
    directory = pretrained / scale.encoder
    peaks = alternate(
        {kind: lambda _, kind=kind: product_peak(kind, device) for kind in kinds},
        scale.rounds,
        "peak",
    )
    results: dict[str, Any] = {
        "machine": describe(device),
        "versions": {name: importlib.metadata.version(name) for name in _LIBRARIES},
        "data": {"pairs": len(frame), "is_sample": sources.is_sample},
        "encoder": scale.encoder,
        "rounds": scale.rounds,
        "peak_flops": {kind: asdict(Spread.of(values)) for kind, values in peaks.items()},
    }
    parts = {
        "speed": partial(
            compare,
            own,
            directory,
            frame,
            train_pairs=scale.train_pairs,
            predict_pairs=scale.predict_pairs,
            precisions=kinds,
            rounds=scale.rounds,
            # A peak is what the machine can do, not what it did while it was disturbed.
            peaks={kind: spread["high"] for kind, spread in results["peak_flops"].items()},
        ),
        "step": lambda: {
            name: step_parts(own[name], frame, fastest, scale.rounds) for name in ARCHITECTURES
        },
        "attacks": lambda: {
            name: attack_costs(own[name], frame, scale.train_pairs // 2, fastest, scale.rounds)
            for name in ARCHITECTURES
        },
        "growth": partial(
            growth,
            own["siamese"],
            RivalSiamese(directory),
            frame,
            scale.growth_pairs,
            fastest,
            max(2, scale.rounds // 2),
        ),
        "accuracy": lambda: _accuracy(scale, sources.dev, frame, pretrained),
        "memory_gb": lambda: _memory(scale, frame, kinds, pretrained),
        "start_up_s": partial(start_up, scale.rounds),
        "stages_s": partial(stage_times, pretrained, list(scale.stages)),
        "large": lambda: _large(scale, frame, fastest, device),
    }
    partial_results = folder / "bench.partial.json"
    for name, part in parts.items():
        print(f"── {name}", file=sys.stderr, flush=True)
        results[name] = part()
        write_json(partial_results, results)
    results["seconds"] = round(time.perf_counter() - began)
    write_json(folder / "bench.json", results)
    draw(results, folder / "bench.svg")
    partial_results.unlink()
    return results


def _accuracy(
    scale: Scale, dev: Path | None, frame: pd.DataFrame, pretrained: Path
) -> dict[str, Any] | None:
    """None where there is no dev file."""
    if dev is None:
        return None
    rows = read_pairs(dev, labelled=True).frame
    return accuracy(scale.encoder, frame, rows, scale.accuracy_pairs, pretrained)


def _memory(
    scale: Scale, frame: pd.DataFrame, kinds: list[str], pretrained: Path
) -> dict[str, dict[str, float]]:
    return {
        f"{name}, {kind}": training_memory(
            name, scale.encoder, frame, scale.train_pairs, kind, pretrained
        )
        for name, kind in tqdm(scale.memory, "memory", unit="pair of processes")
        if kind in kinds
    }


def _large(
    scale: Scale, frame: pd.DataFrame, precision: str, device: torch.device
) -> dict[str, Any] | None:
    """None where there is no GPU."""
    if device.type != "cuda" and not scale.large_anywhere:
        return None
    return large_encoder(dict(scale.large), frame, 4 * scale.train_pairs, precision, scale.rounds)
