"""Writes down what happens in a run, for whoever looks at it now or later. It changes nothing, and draws nothing.

What is written depends on the events alone: the same on any number of workers, and after any interruption. Of more
compute events than `record.events` every n-th is written down, with the messages that it sends.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from pushcen.learning import Score, Work
from pushcen.protocol import Envelope, audit, name_of
from pushcen.record import EVENTS, RECORD, STATES, VERSION, RecordFile
from pushcen.simulation.client import SimulatedClient
from pushcen.simulation.executors import Ticket
from pushcen.simulation.meters import Reading
from pushcen.simulation.meters.mass import MassMeter

if TYPE_CHECKING:
    from pushcen.simulation.engine import Engine

STATES_IN_ALL = 100_000  # of single clients: a thousand clients at a hundred evaluations
PARTS = 10_000  # a model's share of an average is a number of these
LONGEST_REASON = 300  # letters
CLASSES = 1_000  # up to which it is written down how labels are distributed
LABEL_COUNTS = 100_000  # of all clients together
P = ParamSpec("P")
R = TypeVar("R")


def _timed(hook: "Callable[Concatenate[Recorder, P], R]") -> "Callable[Concatenate[Recorder, P], R]":
    """Return a hook that adds the CPU time it takes to the recorder's."""

    @functools.wraps(hook)
    def timed(self: "Recorder", /, *args: P.args, **options: P.kwargs) -> R:
        begin = thread_time()
        try:
            return hook(self, *args, **options)
        finally:
            self.seconds += thread_time() - begin

    return timed


class Recorder:
    """The record of one run; `state` is what `save` returned where it goes on."""

    def __init__(self, engine: "Engine", folder: Path, state: Mapping[str, Any] | None) -> None:
        world = engine.world
        self._engine = engine
        self.seconds = 0.0  # of the CPU, that it has taken so far
        self._instant = world.network.instant
        expected = sum(world.horizon / max(node.pace, 1e-9) for node in engine.nodes)
        looks = world.horizon / world.evaluation.every
        self._every = max(1, math.ceil(expected / world.record.events))
        self._looks = max(1, math.ceil(looks * world.clients / STATES_IN_ALL))
        files = [folder / RECORD / name for name in (EVENTS, STATES)]
        sizes = [0, 0]
        if state is not None and _goes_on(files, state):
            sizes, self._every, self._looks = state["sizes"], state["every"], state["looks"]
        self._events, self._states = map(RecordFile, files, sizes)
        self._missed: dict[int, list[int]] = {}  # by sender: receivers of the present push that it has not reached
        self._scores: dict[SimulatedClient, Score] = {}
        self._mass = next((meter for meter in engine.evaluator.meters if isinstance(meter, MassMeter)), None)
        if not self._events.size:
            self._begin()

    def _begin(self) -> None:
        """Write the heads."""
        engine = self._engine
        head = {"version": VERSION, "clients": engine.world.clients, "since": engine.now}
        self._events.add(
            head
            | {
                "horizon": engine.world.horizon,
                "every": self._every,
                "instant": self._instant,
                "founded": str(engine.founded) if engine.moves_mass else None,
                "joins": {str(client): time for client, time in engine.join_times.items()},
                "samples": [node.facts.samples for node in engine.nodes],
                "online": [node.index for node in engine.nodes if node.online],
                **_labels([node.facts.counts for node in engine.nodes]),
            }
        )
        self._states.add(head)

    def _skips(self, ticket: Ticket) -> bool:
        """Return whether what belongs to a compute event is left out; answers to questions belong to none."""
        return ticket.born % self._every > 0 if ticket.born else self._every > 1

    @_timed
    def stepped(self, node: SimulatedClient, work: Work, ticket: Ticket) -> None:
        """Write down a compute event: what it merged, how old that was, and what the client holds now."""
        if self._skips(ticket):
            return
        merged: list[int] = []
        if work.models:
            total = work.own + sum([weight for weight, _, _ in work.models])
            for weight, _, used in work.models:
                merged += (used.client, used.born, weight * PARTS // total if total else 0)
        self._events.add(["m", self._engine.now, node.index, ticket.born, str(node.client.peer.held), merged])

    @_timed
    def moved(self, node: SimulatedClient, other: str, share: float, number: int) -> None:
        """Write down that a client's model has moved towards another's: half of an exchange."""
        if number % self._every == 0:
            self._events.add(["x", self._engine.now, node.index, int(other), round(PARTS * share)])

    @_timed
    def sent(self, node: SimulatedClient, envelopes: Sequence[Envelope], sizes: Mapping[int, int]) -> None:
        """Write down a push: who gets how many bytes; of a network that is instant, also whom it has not reached."""
        missed = self._missed.pop(node.index, [])
        if not envelopes or self._skips(envelopes[0].payload):
            return
        to: list[int] = []
        for envelope in envelopes:
            to += (int(name_of(envelope.receiver)), sizes[envelope.part])
        self._events.add(["s", self._engine.now, node.index, envelopes[0].payload.born, node.bytes_sent, to, missed])

    @_timed
    def delivered(self, what: str, envelope: Envelope) -> None:
        """Write down that an envelope has arrived ("a"), has been lost or refused ("l"), or came again ("d")."""
        sender, receiver = int(name_of(envelope.sender)), int(name_of(envelope.receiver))
        if self._instant:
            self._missed.setdefault(sender, []).append(receiver)
        elif not self._skips(envelope.payload):
            self._events.add([what, self._engine.now, receiver, sender, envelope.payload.born])

    def visited(self, node: SimulatedClient, what: str) -> None:
        """Write down that a client comes or goes."""
        self._events.add(["p", self._engine.now, node.index, what])

    def failed(self, time: float, client: str, why: str) -> None:
        """Write down that a compute event has failed; that is known a little later."""
        self._states.add({"t": time, "failed": int(client), "why": why[:LONGEST_REASON]})

    def scored(self, by_node: dict[SimulatedClient, Score]) -> None:
        """Take the clients' scores, for the state that is completed next."""
        self._scores = by_node

    @_timed
    def read(self) -> Reading:
        """Note how everybody stands now; write it down when the scores are there."""
        engine = self._engine
        state: dict[str, Any] = {"t": engine.now, "steps": engine.steps}
        if engine.moves_mass:
            state["book"] = self._book()
        count = round(engine.now / engine.world.evaluation.every)
        detailed = count % self._looks == 0 or engine.now >= engine.world.horizon
        if not detailed:
            return Reading((), lambda _: self._complete(state, {}))
        peers = [node.peer for node in engine.nodes]
        state["online"] = "".join("01"[node.online] for node in engine.nodes)
        state["sent"] = [node.bytes_sent for node in engine.nodes]
        state["lost"] = [node.messages_lost for node in engine.nodes]
        state["held"] = " ".join([str(peer.held) for peer in peers])
        state["waiting"] = " ".join([str(peer.waiting) for peer in peers])
        return Reading((), lambda _: self._complete(state, self._scores))

    @_timed
    def _complete(self, state: dict[str, Any], scores: Mapping[SimulatedClient, Score]) -> dict[str, Any]:
        """Write a state down, with the clients' scores if it has clients; return no figure for the metrics."""
        if "held" in state:
            found = {node.index: score.metric for node, score in scores.items() if score.samples}
            values = [found.get(client, math.nan) for client in range(len(self._engine.nodes))]
            state["metric"] = [round(value, 5) if math.isfinite(value) else None for value in values]
        self._states.add(state)
        return {}

    def _book(self) -> dict[str, Any]:
        """Return where all mass is, in quanta, as text: in JavaScript not every number of them would be exact."""
        engine = self._engine
        found = self._mass.found if self._mass is not None else None
        if found is None:
            found = audit([node.peer.save() for node in engine.nodes] + engine.presence.left)
        accepted = sum([node.peer.waiting for node in engine.nodes])
        waiting = sum([mass for node in engine.nodes for mass, _ in node.peer.peek()])
        quanta = {
            "founded": found.founded,
            "held": found.held,
            "waiting": waiting,
            "folded": accepted - waiting,  # also what an event has taken that runs
            "under_way": found.on_links - accepted,
            "written_off": found.written_off + sum(found.destroyed.values()),
            "missing": sum(found.missing.values()),
        }
        exact = found.balanced and not found.violations and not found.missing
        return {name: str(value) for name, value in quanta.items()} | {"exact": exact}

    @_timed
    def flush(self) -> None:
        """Let others read what has happened so far."""
        self._events.flush()
        self._states.flush()

    @_timed
    def save(self) -> dict[str, Any]:
        """Return where to go on from, after everything up to there is durable."""
        return {"sizes": [self._events.sync(), self._states.sync()], "every": self._every, "looks": self._looks}

    def close(self) -> None:
        """Write the rest, and close the files."""
        self._events.close()
        self._states.close()


def _labels(counts: Sequence[Mapping[int, int] | None]) -> dict[str, list[list[int]]]:
    """Return how many samples of each label each client has: a list for each label; nothing where there are too many.

    >>> _labels([{0: 3}, {0: 1, 1: 4}]), _labels([{0: 3}, None])
    ({'labels': [[3, 1], [0, 4]]}, {})
    """
    known = [one for one in counts if one is not None]
    classes = 1 + max((max(one, default=-1) for one in known), default=-1)
    least = min((min(one, default=0) for one in known), default=0)
    if len(known) < len(counts) or not 0 < classes <= CLASSES or least < 0 or classes * len(counts) > LABEL_COUNTS:
        return {}
    return {"labels": [[one.get(label, 0) for one in known] for label in range(classes)]}


def _goes_on(files: Sequence[Path], state: Mapping[str, Any]) -> bool:
    """Return whether the files have all that a checkpoint saw of them; else the record begins anew."""
    sizes = state.get("sizes")
    counts = (state.get("every"), state.get("looks"))
    if not isinstance(sizes, list) or len(sizes) != len(files) or not all(type(n) is int and n > 0 for n in counts):
        return False
    seen = zip(files, sizes, strict=True)
    return all(type(size) is int and file.is_file() and 0 < size <= file.stat().st_size for file, size in seen)
