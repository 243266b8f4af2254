"""What the parts of a running peer share for as long as it runs: who it is, its options, whom it knows, its log."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from pushcen.errors import DiskError
from pushcen.runtime.logs import Log
from pushcen.runtime.members import Members
from pushcen.runtime.metrics import Metrics
from pushcen.runtime.options import RuntimeOptions
from pushcen.runtime.pace import Pace
from pushcen.runtime.security.identity import Identity
from pushcen.runtime.sightings import Sightings

T = TypeVar("T")
_LONGEST_WAIT = 30.0  # seconds between two tries


class Refusal(Exception):  # noqa: N818
    """Something that is not taken in. `reason` is a word for the metrics, the text is for people."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


@dataclass(frozen=True)
class Shared:
    """The parts that all others may use, none of which is ever replaced."""

    identity: Identity
    settings: RuntimeOptions
    members: Members
    log: Log
    metrics: Metrics
    seen: Sightings
    pace: Pace
    proxy: str = ""
    """HOST:PORT through which all calls go out, by HTTP CONNECT."""

    @classmethod
    def of(cls, identity: Identity, settings: RuntimeOptions, rng: Random, proxy: str = "") -> "Shared":
        """Make those of a peer that knows nobody yet."""
        name, pace = identity.name, Pace(settings.hello_timeout, settings.push_timeout)
        members = Members(name, settings, rng)
        return cls(identity, settings, members, Log(name), Metrics(name), Sightings(), pace, proxy)

    def refused(self, reason: str, caller: str, text: str) -> None:
        """Count a refusal, and log it at a bounded rate."""
        self.metrics.refusals.labels(reason).inc()
        self.seen.facts.refused(caller, reason)
        self.log.seldom(f"{reason} {caller}", "refused", reason=reason, caller=caller, text=text)

    async def on_disk(self, thread: Executor, work: Callable[[], T]) -> T:
        """Do some work in a thread. While the disk has no room, or no descriptor is left, wait and try again."""
        wait = self.settings.retry_first
        while True:
            try:
                done = await asyncio.get_running_loop().run_in_executor(thread, work)
                self.seen.waits_for = ""
                return done
            except DiskError as error:
                self.seen.waits_for = str(error)
                self.metrics.disk_waits.inc()
                self.log.seldom("disk", "waits for its disk", level=logging.ERROR, text=str(error))
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
