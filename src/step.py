"""A step: one folder, made once, made again only when what it depends on changes.

`done.json` in the folder records the settings, the content of the inputs and the code of a finished
step; a step is current while they are the same. `pending.json` records them while it is being made,
so that a killed step continues from its own traces and never from those of other settings.
"""

import json
import os
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import UserError
from .files import read_json, sha256, write_json
from .fingerprint import code_of

MARKER = "done.json"
PENDING = "pending.json"
_DEPENDS = ("settings", "inputs", "code")


@dataclass(frozen=True)
class Step:
    """What is made where, from what.

    Attributes:
        name: as shown to the user, such as "train siamese-e5 fold 2".
        folder: everything that `make` writes.
        make: writes the results into the folder, or to the places that `delivers` names; runs
            again from its own traces after a kill. The code that it depends on is found by
            `fingerprint.code_of`.
        reads: files whose content the result depends on.
        settings: JSON-able; whatever else the result depends on.
        code: further functions whose code counts.
        delivers: files outside the folder that `make` writes.
        superseded: folder to which results of other settings are moved (what took hours to make);
            the latest ones are kept there, and taken back when their settings return. None: they
            are removed.
        shared: whether all processes of a launch make the step together (training).

    A file of the folder that is gone, or a delivered one that is gone or was replaced, makes the
    step run again.
    """

    name: str
    folder: Path
    make: Callable[[Path], object]
    reads: Sequence[Path] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    code: Sequence[Callable] = ()
    delivers: Sequence[Path] = ()
    superseded: Path | None = None
    shared: bool = False

    def depends(self) -> dict[str, Any]:
        """Settings, inputs (name and SHA-256) and code (file → SHA-256), as they are recorded."""
        # Through JSON, so that what is compared with a record has passed what the record has.
        settings = json.loads(json.dumps(self.settings, sort_keys=True, default=str))
        inputs = [[f"{path.parent.name}/{path.name}", sha256(path)] for path in self.reads]
        return {"settings": settings, "inputs": inputs, "code": code_of(self.make, *self.code)}

    def is_current(self) -> bool:
        """Whether the folder holds the result of exactly these settings, inputs and code."""
        record = _record(self.folder / MARKER)
        return (
            record is not None
            and all((self.folder / name).is_file() for name in record["files"])
            and _same(record, self.depends())
            and record["delivered"] == self._delivered()
        )

    def changes(self, remade: Mapping[Path, str]) -> str | None:
        """Why a step that was made once is to be made again, in words; None where it is not.

        Args:
            remade: folder → name of earlier steps that will be made again.
        """
        record = _record(self.folder / MARKER)
        if record is None:
            return None
        follows = [p for p in self.reads if p.parent in remade or not p.is_file()]
        if follows:
            return f"follows from {remade.get(follows[0].parent, 'a step that is new')}"
        if self.is_current():
            return None
        now = self.depends()
        found = [
            *_differences("settings", record["settings"], now["settings"]),
            *_differences("input", dict(record["inputs"]), dict(now["inputs"])),
            *_differences("code", record["code"], now["code"]),
        ]
        return "; ".join(found) or "a file of it is gone or was replaced"

    def run(self) -> bool:
        """Make the folder unless it is current; True when something was done.

        A step that another process is making is waited for, then seen to be current. Of the
        processes of one launch the main one decides and does what is not `shared`.
        """
        processes = launched_processes()
        launch = _Launch(self.folder) if processes and self.shared else None
        if processes and not processes.is_main_process:
            needed = launch is not None and launch.wait()
            if needed:
                self.make(self.folder)
        else:
            with exclusive(self.folder.with_name(f".{self.folder.name}.lock"), self.name):
                needed = not self.is_current() and not self._take_back()
                started = time.perf_counter()
                depends = self._begin() if needed else {}
                if launch:
                    launch.say(needed)
                if needed:
                    self.make(self.folder)
                    self._finish(depends, time.perf_counter() - started)
        if processes and launch:
            processes.wait_for_everyone()
            launch.forget()
        return needed

    def _delivered(self) -> dict[str, str | None]:
        return {str(p): sha256(p) if p.is_file() else None for p in self.delivers}

    def _take_back(self) -> bool:
        """Exchange the folder for the superseded one where that is what is asked for.

        Returns:
            Whether that is all; half of a training comes back, too, and is continued.
        """
        if self.superseded is None:
            return False
        record = _record(self.superseded / MARKER) or _record(self.superseded / PENDING)
        if not _same(record, self.depends()):
            return False
        between = self.superseded.with_name(f".{self.superseded.name}.partial")
        self.superseded.rename(between)
        if self.folder.exists():
            self.folder.rename(self.superseded)
        between.rename(self.folder)
        print(f"── {self.name}: taken back from {self.superseded}", file=sys.stderr, flush=True)
        return self.is_current()

    def _begin(self) -> dict[str, Any]:
        """Clear away what other settings have left; what the step depends on from now."""
        print(f"── {self.name}", file=sys.stderr, flush=True)
        depends = self.depends()
        pending, marker = self.folder / PENDING, self.folder / MARKER
        record = _record(pending) or _record(marker)
        has_results = self.folder.is_dir() and any(self.folder.iterdir())
        if self.superseded and has_results and not _same(record, depends):
            shutil.rmtree(self.superseded, ignore_errors=True)
            self.superseded.parent.mkdir(parents=True, exist_ok=True)
            self.folder.rename(self.superseded)
        self.folder.mkdir(parents=True, exist_ok=True)
        marker.unlink(missing_ok=True)
        # Traces of other settings (half of a table, a stale index) are no use.
        if not _same(_record(pending), depends):
            for stale in self.folder.iterdir():
                if stale.is_file():
                    stale.unlink()
            write_json(pending, depends)
        return depends

    def _finish(self, depends: dict[str, Any], seconds: float) -> None:
        files = [path.name for path in self.folder.iterdir() if path.is_file()]
        record = depends | {
            "files": sorted(set(files) - {PENDING}),
            "delivered": self._delivered(),
            "seconds": round(seconds, 2),
            "peak_memory_gb": round(peak_memory_gb(), 3),
        }
        write_json(self.folder / MARKER, record)
        (self.folder / PENDING).unlink()


def _record(path: Path) -> dict[str, Any] | None:
    """What a step depended on; None where nothing, or an earlier version, has written it down."""
    record = read_json(path) if path.is_file() else {}
    return record if record.keys() >= set(_DEPENDS) else None


def _same(record: dict[str, Any] | None, depends: dict[str, Any]) -> bool:
    """Inputs are compared by content: a work folder can be moved to another machine."""
    if record is None:
        return False
    hashes = [[sha for _, sha in found["inputs"]] for found in (record, depends)]
    same = all(record[name] == depends[name] for name in ("settings", "code"))
    return same and hashes[0] == hashes[1]


def _differences(what: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """ "settings training.epochs: 4 → 3" for values, "code models/siamese.py" for hashes."""
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            inner = _differences("", before, after)
            yield from (f"{what} {name}.{text.strip()}" for text in inner)
        elif what in ("input", "code"):
            yield f"{what} {name}"
        else:
            yield f"{what} {name}: {before} → {after}"


def launched_processes():
    """accelerate's view of the processes of one launch; None for an ordinary run."""
    if int(os.environ.get("WORLD_SIZE") or "1") == 1:
        return None
    import torch
    from accelerate import PartialState

    # Unless told, accelerate takes processes without a GPU for strangers.
    return PartialState(cpu=not torch.cuda.is_available())


def is_main_process() -> bool:
    """Whether this process is the only one, or the first of a launch."""
    processes = launched_processes()
    return processes is None or processes.is_main_process


class _Launch:
    """What the main process of a launch says to the others: whether a step has to be made.

    It is said by a file. A collective operation would run into its time limit, or keep a GPU busy,
    while the main process waits for a lock or works alone.
    """

    def __init__(self, folder: Path) -> None:
        names = ("TORCHELASTIC_RUN_ID", "MASTER_PORT")
        launch = "-".join([*(os.environ.get(name, "") for name in names), str(os.getppid())])
        self.file = folder.with_name(f".{folder.name}.launch-{launch}")

    def say(self, needed: bool) -> None:
        write_json(self.file, needed)

    def wait(self) -> bool:
        parent = os.getppid()
        while not self.file.is_file():
            time.sleep(0.1)
            if os.getppid() != parent:
                raise UserError("The launch that this process belongs to has ended.")
        return read_json(self.file)

    def forget(self) -> None:
        self.file.unlink(missing_ok=True)


@contextmanager
def exclusive(path: Path, what: str) -> Iterator[None]:
    """Hold the file `path` as a lock; says so when it has to wait for another process.

    The operating system frees the lock when its holder dies, also by `kill -9`. Of the processes
    of one launch the main one holds it for all.
    """
    processes = launched_processes()
    if processes and not processes.is_main_process:
        yield
        return
    from filelock import FileLock, Timeout  # here, because `--help` need not wait for it

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
