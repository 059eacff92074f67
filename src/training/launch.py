"""Several processes for one training: one a GPU, or all on the CPU."""

import os
import sys
import uuid
from collections.abc import Sequence

import torch
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from ..errors import UserError


def launch_processes(count: int, arguments: Sequence[str]) -> None:
    """Run `python -m src ARGUMENTS` in `count` processes of this machine, and wait for them.

    When one of them dies, torch's agent ends the others.

    Raises:
        UserError: a process has died. What it had to say for itself stands above.
        SystemExit: of code 2, where the processes have refused their input.
    """
    if not torch.cuda.is_available():
        os.environ["ACCELERATE_USE_CPU"] = "true"  # they talk through gloo
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // count)))
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=count,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        local_addr="localhost",
        max_restarts=0,
        monitor_interval=0.5,
    )
    try:
        elastic_launch(config, sys.executable)("-m", "src", *arguments)
    except SignalException as signal:
        raise KeyboardInterrupt from signal
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        if failure.exitcode == 2:
            sys.exit(2)
        raise UserError(
            f"Process {rank} of the {count} has died (exit code {failure.exitcode}), and the "
            "others were ended. What was finished is kept: the same command continues from there."
        ) from error
