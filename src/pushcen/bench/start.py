"""How long a small run takes from its command to its table, in a process of its own, and where the time goes.

Cold means that no kernel has been compiled yet: numba's cache is a new folder. The process itself, run as
`python -m pushcen.bench.start`, is `pushcen simulate` with a clock at four places.
"""

import contextlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PARTS = ("imports", "kernels", "data", "run")
GOALS = {"cold": 12.0, "warm": 5.0}
_COMMAND = ("simulate", "--clients", "4", "--horizon", "1", "--name", "run")


def run(rounds: int = 3) -> dict[str, dict[str, float]]:
    """Start `rounds` times cold, each time warm afterwards; return the seconds of the quickest of each, by parts."""
    found: dict[str, list[dict[str, float]]] = {"cold": [], "warm": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for kind, starts in found.items():
                starts.append(_started(Path(folder), kind))
    return {kind: min(starts, key=lambda one: one["table"]) for kind, starts in found.items()}


def _started(folder: Path, kind: str) -> dict[str, float]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "kernels")}
    command = [sys.executable, "-m", "pushcen.bench.start", str(folder / kind), str(time.time())]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"the run failed: {done.stderr}")
    parts: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return {name: round(seconds, 2) for name, seconds in parts.items()}


class Clock:
    """Adds up the time in which at least one thread is inside a timed function.

    >>> clock = Clock()
    >>> clock.timed(sum)([1, 2]), clock.seconds > 0
    (3, True)
    """

    def __init__(self) -> None:
        self.seconds = self._began = 0.0
        self._inside, self._lock = 0, threading.Lock()

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with this clock around it."""

        def wrapped(*arguments: Any, **options: Any) -> Any:
            with self._lock:
                self._inside += 1
                if self._inside == 1:
                    self._began = time.time()
            try:
                return function(*arguments, **options)
            finally:
                with self._lock:
                    self._inside -= 1
                    if not self._inside:
                        self.seconds += time.time() - self._began

        return wrapped


def _main(runs: str, began: float) -> None:
    import numba.core.dispatcher as numba
    import rich.progress  # noqa: F401
    import typer  # noqa: F401

    import pushcen.analysis
    import pushcen.config
    import pushcen.runs
    from pushcen.tasks import images

    imported, kernels, data, draw = time.time(), Clock(), Clock(), pushcen.analysis.draw_accuracy
    numba.Dispatcher.compile = kernels.timed(numba.Dispatcher.compile)  # type: ignore[method-assign]
    images._divided = data.timed(images._divided)  # type: ignore[assignment]
    shown = [0.0]

    def then_draw(done: Any) -> None:
        shown[0] = time.time()  # the table is there
        draw(done)

    pushcen.analysis.draw_accuracy = then_draw  # type: ignore[assignment]
    sys.argv = ["pushcen", *_COMMAND, "--runs", runs]
    with contextlib.suppress(SystemExit):  # if it failed, the table is missing
        runpy.run_module("pushcen", run_name="__main__")
    ended = time.time()
    training = shown[0] - imported - kernels.seconds - data.seconds
    parts = dict(zip(PARTS, (imported - began, kernels.seconds, data.seconds, training), strict=True))
    print(json.dumps({"table": shown[0] - began, **parts, "figure": ended - shown[0]}))


if __name__ == "__main__":
    _main(sys.argv[1], float(sys.argv[2]))
