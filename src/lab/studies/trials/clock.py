"""How long something took, in seconds that another program on the same machine does not lengthen.

On a CPU that is the processor's time, of all threads together. A GPU is waited for by the clock.
"""

import time

import torch


def now() -> float:
    """Seconds since some moment; only differences mean something."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()
