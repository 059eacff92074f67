"""In which number format a network computes."""

from contextlib import AbstractContextManager, nullcontext

import torch

_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def resolve(device: torch.device, precision: str) -> tuple[str, str]:
    """The number format of a setting on a device, and why.

    "auto" is bf16 where the hardware computes in it, else fp16 on a GPU (its range is small, so
    training scales the loss), else fp32.
    """
    if precision != "auto":
        return precision, "as set"
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
        if torch.cuda.is_bf16_supported(including_emulation=False):
            return "bf16", f"{name} computes in it"
        return "fp16", f"{name} does not compute in bf16"
    if device.type == "cpu" and torch.cpu._is_avx512_bf16_supported():
        return "bf16", "this processor computes in it"
    return "fp32", "this processor does not compute in bf16"


def half_type(device: torch.device, precision: str) -> torch.dtype | None:
    """The 16-bit format that a setting computes in on a device; None for fp32."""
    return _TYPES.get(resolve(device, precision)[0])


def autocast(device: torch.device, precision: str) -> AbstractContextManager:
    """The mixed-precision context of a setting: "auto", "bf16", "fp16" or "fp32"."""
    half = half_type(device, precision)
    return torch.autocast(device.type, half) if half else nullcontext()
