"""Everything in one run."""

import importlib.metadata
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from accelerate import PartialState

from ...config import Config
from ...data.pairs import read_pairs
from ...data.sources import find_sources
from ...files import write_json
from .benchmark_figure import draw
from .contest import compare
from .growth import growth
from .hardware import describe, precisions, product_peak
from .large_encoder import large_encoder
from .ours import Ours
from .scale import Bench, Scale
from .shortcut_accuracy import accuracy
from .step_costs import attack_costs, step_parts
from .training_memory import training_memory
from .turns import alternate, spread
from .waiting import stage_times, start_up

_LIBRARIES = ("torch", "transformers", "sentence-transformers")
# What is measured, in order: a key of bench.json, and what gives its value. A new one is a line.
PARTS: dict[str, Callable[[Bench], Any]] = {
    "speed": compare,
    "step": step_parts,
    "attacks": attack_costs,
    "growth": growth,
    "accuracy": accuracy,
    "memory_gb": training_memory,
    "start_up_s": start_up,
    "stages_s": stage_times,
    "large": large_encoder,
}


def measure(config: Config, scale: Scale, folder: Path) -> dict[str, Any]:
    """Measure, write `bench.json` and `bench.svg` into `folder`, return the numbers.

    What is measured so far is in `bench.partial.json` after every part, so that one that fails
    loses nothing but itself and what comes after it, and no earlier result.

    The pairs are those of the configuration's data directory, else the sample.

    Raises:
        UserError: the data cannot be read, or the encoder cannot be made.
    """
    began, device, pretrained = time.perf_counter(), PartialState().device, config.paths.pretrained
    sources = find_sources(config.data.model_copy(update={"mirror": False}))
    frame = read_pairs(sources.train, labelled=True).frame
    dev = read_pairs(sources.dev, labelled=True).frame if sources.dev else None
    ours = {
        name: Ours.load(name, scale.encoder, frame, pretrained) for name in ("siamese", "cross")
    }
    kinds = precisions(device)
    turns = {kind: partial(product_peak, kind, device) for kind in kinds}
    peaks = {k: spread(v) for k, v in alternate(turns, scale.rounds, "peak").items()}
    # A peak is what the machine can do, not what it did while it was disturbed.
    highest = {kind: values["high"] for kind, values in peaks.items()}
    bench = Bench(scale, frame, dev, pretrained, device, kinds, highest, ours)
    results: dict[str, Any] = {
        "machine": describe(device),
        "versions": {name: importlib.metadata.version(name) for name in _LIBRARIES},
        "data": {"pairs": len(frame), "is_sample": sources.is_sample},
        "encoder": scale.encoder,
        "rounds": scale.rounds,
        "peak_flops": peaks,
    }
    partial_results = folder / "bench.partial.json"
    for name, part in PARTS.items():
        print(f"── {name}", file=sys.stderr, flush=True)
        results[name] = part(bench)
        write_json(partial_results, results)
    results["seconds"] = round(time.perf_counter() - began)
    write_json(folder / "bench.json", results)
    draw(results, folder / "bench.svg")
    partial_results.unlink()
    return results
