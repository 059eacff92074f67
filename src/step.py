"""A step of the pipeline: one folder, made once, made again only when what it depends on changes.

A step is current when its folder holds a `done.json` with the fingerprint of its settings, the
content of its inputs and the source code that makes it. The marker is removed before the step runs
and written after everything else, so a killed step is simply run again.
"""

import hashlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from .files import read_json, sha256, write_json

SOURCE = Path(__file__).parent
MARKER = "done.json"
PENDING = "pending.json"


@dataclass(frozen=True)
class Step:
    """What is made where, from what.

    Attributes:
        name: as shown to the user, such as "train siamese fold 2".
        folder: everything that `make` writes.
        settings: JSON-able; whatever else the result depends on.
        inputs: files whose content the result depends on.
        code: files and folders under src/ whose text the result depends on.
        make: writes the results into the folder; runs again from its own traces after a kill.
        delivered: files outside the folder that `make` writes.
        shared: whether all processes of a launch make the step together (training).

    A file of the folder that is gone, or a delivered one that is gone or was replaced, makes the
    step run again.
    """

    name: str
    folder: Path
    settings: dict[str, Any]
    inputs: Sequence[Path]
    code: Sequence[str]
    make: Callable[[Path], object]
    delivered: Sequence[Path] = ()
    shared: bool = False

    def fingerprint(self) -> str:
        """SHA-256 over settings, inputs' content and code."""
        content = {
            "settings": self.settings,
            "inputs": [sha256(path) for path in self.inputs],
            "code": [code_version(name) for name in self.code],
        }
        text = json.dumps(content, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def is_current(self) -> bool:
        """Whether the folder holds the result of exactly these settings, inputs and code."""
        marker = self.folder / MARKER
        if not marker.is_file():
            return False
        record = read_json(marker)
        return (
            all((self.folder / name).is_file() for name in record["files"])
            and record["fingerprint"] == self.fingerprint()
            and record["delivered"] == self._delivered()
        )

    def _delivered(self) -> dict[str, str | None]:
        return {str(p): sha256(p) if p.is_file() else None for p in self.delivered}

    def run(self) -> bool:
        """Make the folder unless it is current; True when something was done.

        A step that another process is making is waited for, then seen to be current. Under
        `accelerate launch` the main process decides, and the others help with steps that are
        `shared` between processes and wait for the rest.
        """
        processes = _launched_processes()
        if processes and not processes.is_main_process:
            needed = _from_main(None)
            if needed and self.shared:
                processes.wait_for_everyone()  # until the folder is ready
                self.make(self.folder)
            processes.wait_for_everyone()
            return needed
        with exclusive(self.folder.with_name(f".{self.folder.name}.lock"), self.name):
            needed = not self.is_current()
            if processes:
                _from_main(needed)
            if needed:
                started = time.perf_counter()
                read = self._begin()
                if processes and self.shared:
                    processes.wait_for_everyone()
                self.make(self.folder)
                self._finish(read, time.perf_counter() - started)
        if processes:
            processes.wait_for_everyone()
        return needed

    def _begin(self) -> dict[str, Any]:
        """Take the marker away and clear what other settings have left; what is read from now."""
        print(f"── {self.name}", file=sys.stderr, flush=True)
        fingerprint = self.fingerprint()
        inputs = [sha256(path) for path in self.inputs]
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / MARKER).unlink(missing_ok=True)
        # Traces of another fingerprint (a half-trained model of other settings) are no use.
        pending = self.folder / PENDING
        if not pending.is_file() or read_json(pending)["fingerprint"] != fingerprint:
            for stale in self.folder.iterdir():
                if stale.is_file():
                    stale.unlink()
            write_json(pending, {"fingerprint": fingerprint})
        return {"fingerprint": fingerprint, "inputs": inputs}

    def _finish(self, read: dict[str, Any], seconds: float) -> None:
        files = [path.name for path in self.folder.iterdir() if path.is_file()]
        record = read | {
            "files": sorted(set(files) - {PENDING}),
            "delivered": self._delivered(),
            "seconds": round(seconds, 2),
            "peak_memory_gb": round(peak_memory_gb(), 3),
        }
        write_json(self.folder / MARKER, record)
        (self.folder / PENDING).unlink()


def _launched_processes():
    """accelerate's view of the processes of one launch; None for an ordinary run."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return None
    from accelerate import PartialState

    return PartialState()


def _from_main(decision: bool | None) -> bool:
    """The main process's decision, known to all processes."""
    from accelerate.utils import broadcast_object_list

    return broadcast_object_list([decision])[0]


@contextmanager
def exclusive(path: Path, what: str) -> Iterator[None]:
    """Hold the file `path` as a lock; says so when it has to wait for another process.

    The operating system frees the lock when its holder dies, also by `kill -9`. Of the processes
    of one launch the main one holds it for all.
    """
    processes = _launched_processes()
    if processes and not processes.is_main_process:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0.1)
    except Timeout:
        print(f"Another run is at work on {what}: waiting for it …", file=sys.stderr, flush=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def code_version(name: str) -> str:
    """SHA-256 of a source file, or of all source files in a folder, under src/."""
    path = SOURCE / name
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    digest = hashlib.sha256()
    for file in files:
        if file.suffix in {".py", ".yaml", ".j2"}:
            digest.update(file.read_bytes())
    return digest.hexdigest()


def peak_memory_gb() -> float:
    """Peak resident memory of this process so far, in GB (10⁹ bytes)."""
    # Linux passes ru_maxrss of a parent on to the process that it starts; VmHWM it does not.
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e9
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e9
