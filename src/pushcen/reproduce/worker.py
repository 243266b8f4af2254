"""A process that carries out one run after the other: jobs as lines of JSON come in, progress as lines goes out.

It ends when its input ends, so it does not outlive who started it. On SIGINT it saves its run and reports.
"""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, TextIO

from pushcen.analysis import draw_accuracy
from pushcen.config import load_config
from pushcen.errors import PushcenError
from pushcen.folder import CHECKPOINT
from pushcen.measure import ACCURACY, read, written
from pushcen.runs import launch
from pushcen.simulation import Quiet


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
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed is no report
    tell = _Tell(out)
    try:
        for line in sys.stdin:
            job = json.loads(line)
            try:
                run = launch(load_config(job["config"]), Path(job["folder"]), observers=[tell], then=draw_accuracy)
                if run.finished:  # nothing will go on from it, and hundreds of them are many gigabytes
                    shutil.rmtree(run.folder / CHECKPOINT, ignore_errors=True)
                failed = int(run.number("failed_events") or 0)
                value, known = run.number(run.measure.name), written([run.measure])
                tell.say(done=run.finished, value=value, failed_events=failed, **known)
            except PushcenError as error:
                tell.say(error=str(error))
    except (KeyboardInterrupt, BrokenPipeError):
        os._exit(130)


if __name__ == "__main__":
    main()
