"""A process that carries out one run after the other: jobs as lines of JSON come in, progress as lines goes out.

It ends when its input ends, so it does not outlive who started it. On SIGINT it saves its run and reports.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, TextIO

from pushcen.config import load_config
from pushcen.measure import ACCURACY, read, written
from pushcen.runs.campaign import why
from pushcen.runs.launch import launch
from pushcen.simulation import ExecutorOptions, Quiet


class _Tell(Quiet):
    """An observer that reports how far a run is, in lines of JSON."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._measure = ACCURACY
        self._value: float | None = None
        self._failed_events = 0

    def say(self, **facts: Any) -> None:
        """Write a line; if nobody reads it any more, this raises, and ends the run."""
        self._out.write(json.dumps(facts) + "\n")
        self._out.flush()

    def progress(self, now: dict[str, Any]) -> None:
        """Report the time."""
        share, known = now["time"] / now["horizon"], written([self._measure])
        self.say(share=share, value=self._value, failed_events=self._failed_events, **known)

    def evaluated(self, row: dict[str, Any]) -> None:
        """Remember the accuracy, or what else counts, and how many events failed."""
        self._measure = read(row)[0]
        self._value, self._failed_events = row.get(self._measure.name), row.get("failed_events", 0)


def main() -> None:
    """Carry out jobs until the input ends."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs would ignore it
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed is no report
    try:
        _Tell(out).say(ready=True)
        for line in sys.stdin:
            _carry_out(json.loads(line), _Tell(out))
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(130)


def _carry_out(job: dict[str, Any], tell: _Tell) -> None:
    folder, executor = Path(job["folder"]), ExecutorOptions(**job["executor"])
    sys.path += [part for part in job["path"] if part not in sys.path]  # what can be imported there can be here
    try:
        config = load_config(job["config"])
        run = launch(config, folder, executor=executor, observers=[tell], track=job["track"], strict=job["strict"])
        tell.say(done=run.finished)
    except BrokenPipeError:
        raise
    except Exception as error:
        tell.say(error=why(error, folder))


if __name__ == "__main__":
    main()
