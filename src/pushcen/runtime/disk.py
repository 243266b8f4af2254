"""A disk that may be full for a while: what needs it waits, and goes on."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

from pushcen.errors import DiskError
from pushcen.runtime.logs import Log
from pushcen.runtime.metrics import Metrics

T = TypeVar("T")
_LONGEST_WAIT = 30.0  # seconds between two tries


class Disk:
    """Lets work that needs the disk wait for it."""

    def __init__(self, log: Log, metrics: Metrics, wait: float) -> None:
        self._log, self._metrics, self._wait = log, metrics, wait

    async def use(self, thread: Executor, work: Callable[[], T]) -> T:
        """Do some work in a thread. While there is no room, or no descriptor left, wait and try again."""
        wait = self._wait
        while True:
            try:
                return await asyncio.get_running_loop().run_in_executor(thread, work)
            except DiskError as error:
                self._metrics.disk_waits.inc()
                self._log.seldom("disk", "waits for its disk", level=logging.ERROR, text=str(error))
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)
