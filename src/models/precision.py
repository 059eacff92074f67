"""In which number format a network computes."""

from contextlib import AbstractContextManager, nullcontext

import torch


def autocast(device: torch.device, precision: str) -> AbstractContextManager:
    """The mixed-precision context of a setting: "auto", "bf16" or "fp32".

    "auto" is bf16 where the hardware computes in it, else plain fp32.
    """
    if precision == "auto":
        if device.type == "cuda":
            supported = torch.cuda.is_bf16_supported(including_emulation=False)
        else:
            supported = device.type == "cpu" and torch.cpu._is_avx512_bf16_supported()
        precision = "bf16" if supported else "fp32"
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16)
