"""Exchanges with an answer in the simulated world: who asks whom at the end of an event, and what both then do."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pushcen.errors import OptionError
from pushcen.learning import ExchangeUpdate, Work
from pushcen.protocol import ANSWER, Ask, Contact, Envelope, answer_to, name_of
from pushcen.simulation.client import SimulatedClient
from pushcen.simulation.jobs import Job, Result
from pushcen.simulation.network import Delivery
from pushcen.streams import restore_stream, stream

if TYPE_CHECKING:
    from pushcen.simulation.engine import Engine
    from pushcen.simulation.executors import Host


@dataclass(frozen=True, slots=True)
class PassTime(Job):
    """Lets time pass for the models that a client keeps, up to `time`, in mean gradient times."""

    time: float
    mixing: float

    def run(self, host: "Host", client: int, inputs: Iterator[Any]) -> Result:  # noqa: ARG002
        """Mix them."""
        host.learners[client].update.wait(self.time, self.mixing)
        return None, None


@dataclass(frozen=True, slots=True)
class AnswerQuestion(Job):
    """Moves a client towards the model that asks, which is the input, and makes the answer."""

    share: float
    momentum: float

    def run(self, host: "Host", client: int, inputs: Iterator[Any]) -> Result:
        """Make the answer: what the model that asked has more than this one had."""
        return None, host.learners[client].update.answer(next(inputs)[0], self.share, self.momentum)


@dataclass(frozen=True, slots=True)
class HearAnswer(Job):
    """Moves a client by the answer that it has got, which is the input."""

    share: float
    momentum: float

    def run(self, host: "Host", client: int, inputs: Iterator[Any]) -> Result:
        """Move it."""
        host.learners[client].update.hear(next(inputs)[ANSWER], self.share, self.momentum)
        return None, None


class Exchanges:
    """Drives clients whose rule is `Ask`. They are always computing, and answer all the same."""

    def __init__(self, engine: "Engine") -> None:
        method = engine.world.method
        if not method.exchanges or not isinstance(method.update(), ExchangeUpdate):
            raise OptionError(
                f"method.name = {method.name!r}: its rules ask for answers, so it must have exchanges = True and an "
                "ExchangeUpdate"
            )
        self._engine = engine
        self._rng = stream(engine.world.seed, "exchanges")
        self._rate = statistics.fmean(1 / node.pace for node in engine.nodes)  # events of a client in a unit of time
        self.asked = self.answered = self.completed = 0

    def begin(self, node: SimulatedClient) -> Work:
        """Begin a compute event: training will start from the model as it is now."""
        self._wait(node)
        return node.client.begin()

    def drawn(self, node: SimulatedClient, contacts: Sequence[Contact]) -> list[Contact]:
        """Return who is asked, of those that may be, at the end of an event."""
        self._wait(node)
        asked = _rule(node).drawn(contacts, self._rng)
        self.asked += len(asked)
        return asked

    def received(self, node: SimulatedClient, envelope: Envelope) -> None:
        """Answer what asks, at once; or move by an answer."""
        rule = _rule(node)
        terms = rule.share_with(name_of(envelope.sender)), rule.momentum
        self._wait(node)
        if self._engine.recorder is not None:
            number = self.answered + self.completed
            self._engine.recorder.moved(node, name_of(envelope.sender), terms[0], number)
        if envelope.part == ANSWER:
            self.completed += 1
            node.proxy.ask(HearAnswer(*terms), envelope.payload)
        else:
            self.answered += 1
            answer = node.proxy.ask(AnswerQuestion(*terms), envelope.payload)
            self._engine.network.send(node, [answer_to(envelope, answer)])

    def figures(self) -> dict[str, int]:
        """Return how many were asked, answered (one has moved), completed (both have), and will stay half done."""
        entries = self._engine.queue.entries()
        deliveries = [event for *_, event in entries if isinstance(event, Delivery) and not event.copy]
        under_way = sum(event.envelope.part == ANSWER for event in deliveries)
        half = self.answered - self.completed - under_way
        return {"asked": self.asked, "answered": self.answered, "completed": self.completed, "half": half}

    def save(self) -> dict[str, Any]:
        """Return the state that `restore` takes."""
        return {"stream": self._rng.getstate(), "counts": [self.asked, self.answered, self.completed]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        restore_stream(self._rng, state["stream"])
        self.asked, self.answered, self.completed = state["counts"]

    def _wait(self, node: SimulatedClient) -> None:
        """Let time pass at a client, where its method has use for that."""
        if mixing := _rule(node).mixing:
            node.proxy.before(PassTime(self._engine.now * self._rate, mixing))


def _rule(node: SimulatedClient) -> Ask:
    rule = node.peer.rules.outbox
    assert isinstance(rule, Ask)
    return rule
