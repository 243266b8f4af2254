"""A network of real processes on this machine, with certificates: for `pushcen up`, and for tests."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pushcen.errors import LedgerError, NetworkError
from pushcen.measure import Measure, read
from pushcen.protocol import Audit
from pushcen.runtime.audit import audit_folders
from pushcen.runtime.rows import NAME, older
from pushcen.runtime.security.authority import Authority
from pushcen.runtime.state_folder import read_state

Row = dict[str, Any]


class LocalNetwork:
    """Peers p0, p1, ... below one folder: certificates in `authority/`, state in `p0/`, logs in `p0.log`."""

    def __init__(
        self,
        folder: Path,
        task: str,
        peers: int,
        events: int | None,
        settings: Mapping[str, Any] | None = None,
        *,
        founders: Sequence[str] | None = None,
        metrics: bool = False,
        hidden: int = 0,
        program: Sequence[str] = ("-m", "pushcen"),
    ) -> None:
        self.folder = folder
        self.names = [f"p{i}" for i in range(peers)]
        self.authority = Authority.found(folder / "authority", "local", list(founders or self.names))
        for name in self.names:
            self.authority.issue(name)
        ports = free_ports(2 * peers)
        self.addresses = {name: f"127.0.0.1:{port}" for name, port in zip(self.names, ports, strict=False)}
        self.metrics = dict(zip(self.names, ports[peers:], strict=True)) if metrics else {}
        self.hidden = self.names[peers - hidden :]  # the last ones, which only dial out
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._program = list(program)
        self._task, self._events, self._settings = task, events, dict(settings or {})
        self._read: dict[str, int] = {}
        self._rows: dict[str, list[Row]] = {name: [] for name in self.names}

    def start(self, *names: str, options: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> None:
        """Start some peers, or all of them."""
        for name in names or self.names:
            at = self.names.index(name)
            near = [self.names[other] for other in {0, 1, at - 1} if other != at and other < len(self.names)]
            joins = [self.addresses[other] for other in near if other not in self.hidden]
            command = [sys.executable, *self._program, "peer", self._task]
            command += [] if name in self.hidden else ["--listen", self.addresses[name]]
            command += ["--certs", str(self.folder / "authority" / name), "--state", str(self.state(name))]
            command += [word for address in joins for word in ("--join", address)]
            command += ["--client", str(at), "--clients", str(len(self.names))]
            command += [] if self._events is None else ["--events", str(self._events)]
            command += ["--metrics", f"127.0.0.1:{self.metrics[name]}"] if self.metrics else []
            for key, value in self._settings.items():
                command += ["--set", f"{key}={value}"]
            with (self.folder / f"{name}.log").open("ab") as log:
                self.processes[name] = subprocess.Popen(
                    [*command, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})}, start_new_session=True,
                )  # fmt: skip

    def state(self, name: str) -> Path:
        """Return a peer's state folder."""
        return self.folder / name

    def kill(self, name: str) -> None:
        """Kill a peer as a power cut would (SIGKILL)."""
        self.processes[name].kill()
        self.processes[name].wait()

    def stop(self, *names: str, timeout: float = 20.0) -> None:
        """Ask some peers, or all, to stop, and wait for them."""
        running = [self.processes[name] for name in names or self.names if name in self.processes]
        for process in running:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in running:
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def rows(self, name: str) -> list[Row]:
        """Return what a peer has measured up to now, a row for each compute event."""
        path = self.state(name) / NAME
        if path.exists():
            if path.stat().st_size < self._read.get(name, 0):  # a new file was begun
                self._take(name, older(path))
                self._read[name] = 0
            self._take(name, path)
        return self._rows[name]

    def _take(self, name: str, path: Path) -> None:
        """Read what a peer has written since."""
        with path.open("rb") as file:
            file.seek(self._read.get(name, 0))
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._read[name] = self._read.get(name, 0) + len(whole)
        self._rows[name] += [row for line in whole.splitlines() if (row := _row(line))]

    def events(self, name: str) -> int:
        """Count a peer's compute events, by its ledger: a peer that dies right after a commit has no row of it."""
        with contextlib.suppress(LedgerError, KeyError):  # it has only just begun
            return int(read_state(self.state(name))["learner"]["events"])
        return 0

    def finished(self) -> bool:
        """Return whether every peer has had all its compute events; raise if one has died."""
        for name, process in self.processes.items():
            if process.poll() not in (None, 0):
                raise NetworkError(f"{name} ended with {process.returncode}: {self.last_words(name)}")
        return self._events is not None and all(self.events(name) >= self._events for name in self.names)

    def wait(self, timeout: float) -> None:
        """Wait until every peer has had all its compute events."""
        end = time.monotonic() + timeout
        while not self.finished():
            if time.monotonic() > end:
                counts = {name: self.events(name) for name in self.names}
                raise NetworkError(f"not finished after {timeout:.0f} s: {counts}")
            time.sleep(0.2)

    @property
    def measure(self) -> Measure:
        """What peers are measured by, as the first says; accuracy, if none has said anything."""
        return read(next((rows[0] for name in self.names if (rows := self.rows(name))), None))[0]

    def score(self, name: str) -> float | None:
        """Return a peer's newest accuracy on its own test data, or whatever it is measured by."""
        key = self.measure.name
        found = [row[key] for row in self.rows(name) if row.get(key) is not None]
        return found[-1] if found else None

    def audit(self) -> Audit:
        """Audit all ledgers."""
        return audit_folders([self.state(name) for name in self.names if self.state(name).exists()])[0]

    def last_words(self, name: str, lines: int = 3) -> str:
        """Return what a peer ended with: its error, or else the end of its log."""
        path = self.folder / f"{name}.log"
        said = path.read_text(errors="replace").splitlines() if path.exists() else ["no log"]
        return said[-1].removeprefix(_ERROR) if said and said[-1].startswith(_ERROR) else "\n".join(said[-lines:])


_ERROR = "error: "


def free_ports(count: int) -> list[int]:
    """Find ports that nobody listens on, below those that systems hand out by themselves: nobody gets them meanwhile.

    >>> ports = free_ports(3)
    >>> len(set(ports)), max(ports) < 32768
    (3, True)
    """
    found: list[int] = []
    for port in random.SystemRandom().sample(range(10_000, 32_768), 1_000):
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            return found
    raise NetworkError(f"{count} free ports were asked for; found only {len(found)}")


def _row(line: bytes) -> Row | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None  # a line that a kill cut off
    return row if isinstance(row, dict) else None
