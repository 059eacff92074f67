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


def autocast(device: torch.device, precision: str) -> AbstractContextManager:
    """The mixed-precision context of a setting: "auto", "bf16", "fp16" or "fp32"."""
    name, _ = resolve(device, precision)
    return torch.autocast(device.type, _TYPES[name]) if name in _TYPES else nullcontext()
