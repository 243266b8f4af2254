"""Run a command, and see from outside what it and everything that it starts take: memory and processor time. Linux."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

_TICKS = os.sysconf("SC_CLK_TCK")
_SHARE = 0.02  # of the time, at most, is spent on looking
_KEPT = 1_000_000  # bytes of what a command has printed, the last ones
Process = tuple[int, str]  # its number, and when it was started, as numbers are used again


@dataclass(frozen=True)
class Watched:
    """How a command ended, and what its processes took."""

    code: int | None  # None: it was ended at the time limit
    output: str
    errors: str
    began: float  # seconds since 1970
    peak: int  # bytes
    processor: Sequence[tuple[float, float]]  # times since 1970, and processor seconds until then

    def processor_seconds(self, begin: float, end: float) -> float:
        """Return the processor time from one moment to another, interpolated.

        >>> Watched(0, "", "", 0.0, 0, [(10.0, 1.0), (20.0, 6.0)]).processor_seconds(12.0, 14.0)
        1.0
        """
        return self._until(end) - self._until(begin)

    def _until(self, moment: float) -> float:
        time_before, before = self.began, 0.0
        for time_after, after in self.processor:
            if time_after >= moment:
                share = (moment - time_before) / (time_after - time_before) if time_after > time_before else 1.0
                return before + max(share, 0.0) * (after - before)
            time_before, before = time_after, after
        return before


def watch(command: Sequence[str], environment: Mapping[str, str], folder: Path, limit: float) -> Watched:
    """Run a command in a folder to its end, or for `limit` seconds; nothing that it has started goes on after that."""
    with TemporaryFile() as output, TemporaryFile() as errors:
        began = time.time()
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=output, stderr=errors)
        tree = ProcessTree(process.pid)
        peak, processor = 0, []
        try:
            while process.poll() is None and time.time() - began < limit:
                looked = time.perf_counter()
                memory, seconds = tree.look()
                peak = max(peak, memory)
                processor.append((time.time(), seconds))
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.1, (time.perf_counter() - looked) / _SHARE))
            code = process.poll()
        finally:
            tree.kill()
            process.wait()
        return Watched(code, _end_of(output), _end_of(errors), began, peak, processor)


class ProcessTree:
    """A process and all that came from it, also those whose parents have ended since they were first seen."""

    def __init__(self, root: int) -> None:
        self._seconds: dict[Process, float] = {}  # of processor time, by process, ended ones too
        self._seconds |= {(pid, start): 0.0 for pid, (_, start, _) in _processes().items() if pid == root}

    def look(self) -> tuple[int, float]:
        """Return the memory that they have now, in bytes, and the processor seconds that they have taken so far.

        What processes share counts once: it is divided among those who share it (PSS).

        >>> memory, seconds = ProcessTree(os.getpid()).look()
        >>> memory > 1e6, seconds > 0
        (True, True)
        """
        alive = self._alive()
        return sum(map(_shared_out, alive)), sum(self._seconds.values())

    def kill(self) -> None:
        """End all of them, and what they start meanwhile."""
        while alive := self._alive():
            for pid in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)

    def _alive(self) -> list[int]:
        there = _processes()
        found = [pid for pid, (_, start, _) in there.items() if (pid, start) in self._seconds]
        children: dict[int, list[int]] = {}
        for pid, (parent, _, _) in there.items():
            children.setdefault(parent, []).append(pid)
        known = set(found)
        for pid in found:  # grows while it is gone through
            new = [child for child in children.get(pid, ()) if child not in known]
            known.update(new)
            found += new
        self._seconds |= {(pid, there[pid][1]): there[pid][2] for pid in found}
        return found


def _end_of(file: IO[bytes]) -> str:
    file.seek(max(0, file.seek(0, os.SEEK_END) - _KEPT))
    return file.read().decode(errors="replace")


def _processes() -> dict[int, tuple[int, str, float]]:
    """Return all that run, by number: the parent, when it was started, the processor seconds that it has taken."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has just ended
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if fields[0] not in "ZX":  # ended, but its parent has not heard of it
                seconds = (int(fields[11]) + int(fields[12])) / _TICKS
                found[int(folder.name)] = int(fields[1]), fields[19], seconds
    return found


def _shared_out(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
