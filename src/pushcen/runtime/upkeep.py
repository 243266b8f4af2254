"""What a running peer looks after by itself: that its certificate is the newest one, and that it says how it is.

It says so in `status.json`, in its figures, and, when something is wrong, in its log.
"""

import asyncio
import math
from collections.abc import Sequence
from time import monotonic

from pushcen.errors import CertificateError
from pushcen.protocol import UNIT, Nobody, epoch_of, name_of
from pushcen.runtime.durable import DurablePeer
from pushcen.runtime.fingerprint import difference
from pushcen.runtime.health import LEVELS, problems
from pushcen.runtime.node import PeerNode
from pushcen.runtime.shared import Shared
from pushcen.runtime.status import EVERY, NeighbourStatus, Status
from pushcen.version import __version__

_TICK = 1.0
_DIFFERENCES = 4  # that are told of each neighbour
_SAY_AGAIN = 3600.0  # seconds after which the log says once more what is still wrong
_DAILY = ("certificate",)  # and what it says once a day


class Upkeep:
    """Looks after one peer, once a second, for as long as it runs."""

    def __init__(self, node: PeerNode, me: DurablePeer, shared: Shared, join: Sequence[str]) -> None:
        self._node, self._me, self._shared, self._join = node, me, shared, list(join)
        self._identity, self._log, self._metrics, self._seen = shared.identity, shared.log, shared.metrics, shared.seen
        self.failure = ""  # the error that this peer ends with
        self._wrong = ""  # with the new certificate in its folder
        self._said: dict[str, float] = {}  # problems, and when the log had them
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look after everything, until it is closed."""
        self._task = asyncio.create_task(self._run())

    def close(self) -> None:
        """Say the last word: that this peer has left or was stopped, or the error that it ended with."""
        if self._task is None:
            return
        self._task.cancel()
        try:
            self._write(self.failure or ("left" if self._me.peer.gone else "stopped"))
        except Exception as error:  # it must not keep a peer from ending as it should
            self._log.seldom("upkeep", "cannot say how it is", text=repr(error))

    async def _run(self) -> None:
        written = -math.inf
        while True:
            try:
                self._renew()
                if monotonic() - written >= EVERY:
                    written = monotonic()
                    self._look(self._write())
            except Exception as error:  # whatever it is, the peer goes on
                self._log.seldom(f"upkeep {error!r:.200}", "cannot say how it is", text=repr(error))
            await asyncio.sleep(_TICK)

    def _renew(self) -> None:
        """Take a new certificate over, once it is there."""
        try:
            if self._identity.renew():
                end = f"{self._identity.until:%Y-%m-%d}"
                self._log.say("a new certificate", until=end, serial=f"{self._identity.serial:x}")
            self._wrong = ""
        except CertificateError as error:  # an operator may be half-way through copying it
            self._wrong = str(error)
            self._log.seldom("certificate", "goes on with the certificate that it has", text=self._wrong)
        until = self._identity.until
        self._metrics.certificate.set(until.timestamp() if until else math.inf)

    def _look(self, status: Status) -> None:
        """Log what is wrong, when it begins and now and then; and that it is over."""
        found, now = problems(status, status.time), monotonic()
        for level in LEVELS[1:]:
            self._metrics.problems.labels(level).set(sum(one.level == level for one in found))
        self._metrics.last_news.set(status.received)
        for one in found:
            every = 24 * _SAY_AGAIN if one.kind in _DAILY else _SAY_AGAIN
            if now - self._said.get(one.kind, -math.inf) >= every:
                self._said[one.kind] = now
                self._seen.facts.warned(one.kind, one.level)
                self._log.warn("something is wrong", kind=one.kind, text=one.text, hint=one.hint)
        for kind in self._said.keys() - {one.kind for one in found}:
            del self._said[kind]
            self._seen.facts.warned(kind, LEVELS[0])
            self._log.say("well again", kind=kind)

    def _write(self, ended: str = "") -> Status:
        status = self.status(ended)
        try:
            status.write(self._me.store.folder)
        except OSError as error:  # nothing depends on it
            self._log.seldom("status", "cannot write its status", text=str(error))
        return status

    def status(self, ended: str = "") -> Status:
        """Return how this peer is now."""
        peer, seen, metrics = self._me.peer, self._seen, self._metrics
        until, rules = self._identity.until, peer.rules
        return Status(
            time=seen.clock(),
            started=seen.started,
            ended=ended,
            version=__version__,
            network=self._identity.network.name,
            peer=peer.me if epoch_of(peer.me) else self._identity.name,
            boot=peer.boot,
            address=self._node.address,
            phase=seen.phase if peer.status == "open" else peer.status,
            leaving=seen.leaving,
            method=self._node.about.get("method", ""),
            events=self._me.learner.events,
            seconds=seen.seconds,
            trained=seen.trained,
            merged=seen.merged,
            received=seen.pushed.last,
            failed=seen.failed,
            failure=seen.failure,
            exchanges=not isinstance(rules.outbox, Nobody),
            moves_mass=rules.weights.moves_mass,
            held=peer.held / UNIT,
            waiting=peer.waiting / UNIT,
            models=len(peer.peek()),
            certificate_end=until.timestamp() if until else 0.0,
            certificate_wrong=self._wrong,
            revoked=self._identity.revoked,
            waits_for=seen.waits_for,
            bytes_in=int(metrics.bytes.labels("in")._value.get()),
            bytes_out=int(metrics.bytes.labels("out")._value.get()),
            quiet_after=self._shared.settings.quiet_after,
            join=self._join,
            silent={name: why for name, why in seen.silent.items() if name in self._join},
            refusals=metrics.refused(),
            neighbours=self._neighbours(),
        )

    def _neighbours(self) -> list[NeighbourStatus]:
        seen, members, leaving = self._seen, self._shared.members, self._me.peer.status == "leaving"
        doubt = {name_of(peer) for peer in self._me.peer.unsettled}
        online, found = {member.name for member in members.online()}, []
        known = {**dict.fromkeys(seen.differs, ""), **members.lost, **members.addresses()}
        for name, address in sorted(known.items()):
            why = seen.differs.get(name) or seen.silent.get(name) or "has not answered yet"
            member = members.all.get(name)
            waits = "silent" if member is None or member.failures or members.near(name) else "known"
            varies = member.varies if member else {}
            found.append(
                NeighbourStatus(
                    name=name,
                    address=address,
                    state="answers" if name in online else "refuses" if name in seen.differs else waits,
                    why="" if name in online else why,
                    called=seen.called.get(name, 0.0),
                    pushed=seen.pushed.get(name, 0.0),
                    took=seen.took.get(name, 0.0),
                    differs=difference(self._node.varies, varies, _DIFFERENCES) if varies else "",
                    in_doubt=name in doubt,
                    awaited=leaving and self._me.awaits(name),
                )
            )
        return found
