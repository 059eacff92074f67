"""What the machine can do at most, and what an encoder asks of it."""

import os
import platform

import pandas as pd
import torch
from torch import nn

from ...models.precision import autocast
from .turns import Spread, now, spread

# (rows, inner, columns): large enough to be at the peak, small enough to stay in the cache.
_SHAPES = ((1024, 384, 1536), (1024, 1536, 1536), (2048, 1536, 1536))
_GPU_SHAPE = (8192, 8192, 8192)
_SECONDS = 0.1  # a shape


def precisions(device: torch.device) -> list[str]:
    """fp32, and bf16 where the hardware computes in it."""
    with autocast(device, "auto"):
        return ["fp32", "bf16"] if torch.is_autocast_enabled(device.type) else ["fp32"]


def product_peak(precision: str, device: torch.device, _round: int = 0) -> float:
    """FLOP a second of the fastest matrix product found, measured now."""
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    best = 0.0
    for rows, inner, columns in [_GPU_SHAPE] if device.type == "cuda" else _SHAPES:
        left = torch.randn(rows, inner, device=device).to(kind)
        right = torch.randn(columns, inner, device=device).to(kind)
        product = torch.empty(rows, columns, dtype=kind, device=device)
        torch.mm(left, right.T, out=product)
        repeats, started = 0, now()
        while repeats < 3 or now() - started < _SECONDS:
            torch.mm(left, right.T, out=product)
            repeats += 1
        best = max(best, 2 * rows * inner * columns * repeats / (now() - started))
    return best


def flop_per_token(encoder: nn.Module, training: bool) -> int:
    """Floating point operations of an encoder's linear layers for one token.

    Two for each weight forward, twice that again backward. Attention's own products are left out:
    under 3 % for questions of this length.
    """
    weights = sum(m.weight.numel() for m in encoder.modules() if isinstance(m, nn.Linear))
    return (6 if training else 2) * weights


def token_rates(work: pd.DataFrame, flop: int, peak: float) -> dict[str, Spread]:
    """Spreads of the tokens a second of `race`, and of the share of the peak that they take.

    Args:
        flop: of a token; peak: FLOP a second.
    """
    rates = work["tokens"] / work["seconds"]
    return {"tokens_per_s": spread(rates), "share_of_peak": spread(rates * (flop / peak))}


def describe(device: torch.device) -> dict[str, object]:
    """What a reader needs to place the numbers."""
    return {
        "gpu": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        "cpu": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "cores": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
    }
