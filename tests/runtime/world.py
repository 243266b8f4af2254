"""Peers in this process, with real certificates, sockets and state folders; only the processes are missing."""

import asyncio
import contextlib
import time

from pushcen.learning import TrainingOptions
from pushcen.methods import PushCen
from pushcen.protocol import UNIT, name_of
from pushcen.runtime.audit import audit_folders
from pushcen.runtime.channels import Line
from pushcen.runtime.local import free_ports
from pushcen.runtime.options import RuntimeOptions
from pushcen.runtime.peer import started
from pushcen.runtime.security.authority import Authority
from pushcen.runtime.security.identity import Certified
from pushcen.runtime.setup import Setup

from .tasks import tiny

WORLDS = []
"""Those that the story has made."""

QUICK = {"gossip_every": 0.3, "hello_every": 0.5, "hello_timeout": 1.0, "retry_first": 0.1, "retry_last": 0.5}

LIMIT = 300
"""Seconds that anything may take: a busy machine is slow, and only what never happens fails a test."""


def run(story, seconds=2 * LIMIT):
    """Run a test's story, within a limit; stop whoever it leaves running, so that one that fails ends as others do."""

    async def timed():
        WORLDS.clear()
        try:
            async with asyncio.timeout(seconds):
                await story
        finally:
            for world in WORLDS:
                await world.stop()

    asyncio.run(timed())


async def until(condition, seconds=LIMIT):
    """Wait for something to be so; one that never is may be due to peers that have ended."""
    try:
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.02)
    except TimeoutError as error:
        lives = {name: life for world in WORLDS for name, life in world.lives.items()}
        error.add_note(f"ended: {[(name, life) for name, life in lives.items() if life.done()]}")
        raise


def wait_until(condition, told=lambda: ""):
    """Wait for something of other processes to be so; `told` says why it may not be."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, told()
        time.sleep(0.1)


class Inside:
    """All parts of a running peer under one name, for a test to look at."""

    def __init__(self, driver):
        self._parts = (driver.me, driver.node, driver.shared, driver)

    def __getattr__(self, name):
        for part in self._parts:
            if hasattr(part, name):
                return getattr(part, name)
        raise AttributeError(name)


class World:
    def __init__(self, folder, names=("p0", "p1", "p2"), founders=None, task=tiny, **settings):
        self.folder, self.names, self.task = folder, list(names), task
        self.authority = Authority.found(folder / "authority", "test", list(founders or names))
        for name in names:
            self.authority.issue(name)
        self.addresses = dict(zip(names, (f"127.0.0.1:{port}" for port in free_ports(len(names))), strict=True))
        self.settings = {**QUICK, **settings}
        self.identity = lambda name: Certified(self.certs(name))
        self.drivers, self.lives, self._stacks = {}, {}, {}
        WORLDS.append(self)

    def certs(self, name):
        return self.folder / "authority" / name

    def state(self, name):
        return self.folder / name

    def setup(self, name, **options):
        others = [address for other, address in self.addresses.items() if other != name]
        settings = RuntimeOptions(**{**self.settings, **options.pop("settings", {})})
        values = {"join": others, "listen": self.addresses[name], "state": self.state(name), "runtime": settings}
        values |= {"certs": self.certs(name), "identity": self.identity(name), "task": self.task}
        values |= {"method": PushCen(clusters=4), "training": TrainingOptions(), "client": self.names.index(name)}
        return Setup(**{**values, "clients": len(self.names), "grace": 30.0, **options})

    async def start(self, *names, events=None, leave=False, live=True, **options):
        async def one(name):
            stack = contextlib.AsyncExitStack()
            driver = await stack.enter_async_context(started(self.setup(name, **options)))
            self.drivers[name], self._stacks[name] = driver, stack
            if live:
                self.lives[name] = asyncio.create_task(driver.run(events, leave=leave))

        await asyncio.gather(*map(one, names))
        return [self.node(name) for name in names]

    async def stop(self, *names):
        """Stop without ado: what was not committed is gone, as after a kill."""
        for name in names or list(self.drivers):
            life = self.lives.pop(name, None)
            if life is not None:
                life.cancel()
                await asyncio.gather(life, return_exceptions=True)
            await self._stacks.pop(name).aclose()
            del self.drivers[name]

    def node(self, name):
        return Inside(self.drivers[name])

    def events(self, name):
        return self.node(name).peer.events

    def audit(self):
        return audit_folders([self.state(name) for name in self.names if (self.state(name) / "ledger.db").exists()])[0]

    def line(self, caller, callee, name=None, certs=None):
        """A line of a peer's own, on which a test may say anything."""
        identity = Certified(certs or self.certs(caller))
        address = self.addresses[callee]
        return Line(identity.channel(address, name or callee, []), address, caller)

    async def check(self, founded=None):
        """Stop everybody and audit."""
        await self.stop()
        found = self.audit()
        assert found.violations == []
        assert found.balanced
        assert found.founded == (len(self.authority.network.founders) if founded is None else founded) * UNIT
        return found


__all__ = ["LIMIT", "World", "name_of", "run", "until", "wait_until"]
