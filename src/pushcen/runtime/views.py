"""How a peer is, for those who may look: its status and its newest facts, which members may ask for (`looking`).

There are no weights and no data in a view, nor anything of how the data is distributed; what went wrong inside of the
peer stays in its own log.
"""

import asyncio
import json
import math
import secrets
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import asdict, replace
from time import monotonic

import grpc
from google.protobuf.message import DecodeError

from pushcen.errors import NetworkError
from pushcen.measure import written
from pushcen.runtime.durable import DurablePeer
from pushcen.runtime.gate import Context, Gate
from pushcen.runtime.shared import Shared
from pushcen.runtime.status import Status
from pushcen.runtime.upkeep import Upkeep
from pushcen.runtime.wire import SERVICE, Look, View

PATH = f"/{SERVICE}/View"
AT_ONCE = 500
"""Facts in one answer."""
_PATIENCE = 5.0  # seconds
_FRESH = 1.0  # seconds for which a status is told again
_SAID_INSIDE = "its own log says more"


class Views:
    """Answers who asks how this peer is."""

    def __init__(self, upkeep: Upkeep, me: DurablePeer, shared: Shared) -> None:
        self._upkeep, self._me, self._facts, self._clock = upkeep, me, shared.seen.facts, shared.seen.clock
        self._life = secrets.randbits(52)
        self._status, self._then = Status(), -math.inf

    def serve(self, gate: Gate) -> None:
        """Answer members, as often as they may call."""
        gate.add(PATH, grpc.unary_unary_rpc_method_handler, self._answer)

    async def _answer(self, _caller: str, data: bytes, context: Context) -> bytes:
        try:
            look = Look.FromString(data)
        except DecodeError:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not a message of this service")
        return View(json=self.view(look.life, look.after)).SerializeToString()

    def view(self, life: int = 0, after: int = 0, *, inside: bool = False) -> bytes:
        """Return a view as JSON, with facts after one of this process's; from `inside` there is nothing to hide."""
        if monotonic() - self._then >= _FRESH:
            self._status, self._then = self._upkeep.status(), monotonic()
        peer = self._me.peer
        facts, last = self._facts.after(after if life == self._life else 0, AT_ONCE)
        view = {
            "life": self._life,
            "last": last,
            "now": self._clock(),
            "founded": str(self._me.generation.mass if peer.rules.weights.moves_mass else 0),
            "held": str(peer.held),
            "waiting": str(peer.waiting),
            **written(self._me.learner.measures[:1]),
            "status": asdict(self._status if inside else _shown(self._status)),
            "facts": facts,
        }
        return json.dumps(view, separators=(",", ":")).encode()


def from_any_thread(views: Views) -> Callable[[int, int], bytes]:
    """Return this process's view as what any other thread may ask for, while this event loop runs."""
    loop = asyncio.get_running_loop()

    async def view(life: int, after: int) -> bytes:
        return views.view(life, after, inside=True)

    def ask(life: int, after: int) -> bytes:
        try:
            return asyncio.run_coroutine_threadsafe(view(life, after), loop).result(_PATIENCE)
        except (RuntimeError, TimeoutError, CancelledError) as error:
            raise NetworkError(f"it ends, or has no time: {error}") from None

    return ask


def _shown(status: Status) -> Status:
    """Return a status as others may see it: without words of this machine."""

    def hide(text: str) -> str:
        return text and _SAID_INSIDE

    return replace(
        status, join=[], silent={}, failure=hide(status.failure), waits_for=hide(status.waits_for),
        certificate_wrong=hide(status.certificate_wrong),
    )  # fmt: skip
