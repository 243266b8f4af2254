"""What a meter is."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from pushcen.learning import Outcome, Work
from pushcen.protocol import Envelope
from pushcen.simulation.executors import Ticket
from pushcen.simulation.node import SimulatedClient

if TYPE_CHECKING:
    from pushcen.simulation.engine import Engine


class Reading(NamedTuple):
    """Figures for a row of the metrics: `finish` makes them of the tickets' facts, when these are there."""

    tickets: Sequence[Any]
    finish: Callable[[list[Any]], dict[str, Any]]


class Meter:
    """Measures one thing. Whatever it does changes nothing in the world."""

    name: ClassVar[str]
    watches: ClassVar[bool] = False
    """Whether it wants to see every compute event."""
    needs_reference: ClassVar[bool] = False
    """Whether it needs the reference model."""
    kept: ClassVar[tuple[str, ...]] = ()
    """The attributes that a checkpoint keeps."""

    def __init__(self, engine: "Engine") -> None:
        self.engine = engine

    def stepped(self, node: SimulatedClient, work: Work, envelopes: Sequence[Envelope], ticket: Ticket) -> Any:
        """See a compute event, after its mass is split and before anything is sent; return what `collected` needs."""

    def pushed(self, node: SimulatedClient, envelopes: Sequence[Envelope], masses: Sequence[int]) -> None:
        """See envelopes that belong to no compute event, and the new mass that each carries."""

    def lost(self, node: SimulatedClient) -> None:
        """See that a client has lost what was folded since its last event."""

    def collected(self, outcome: Outcome, context: Any) -> None:
        """See what the event's learner reports."""

    def look(self, nodes: list[SimulatedClient], reference: Ticket | None) -> Reading:  # noqa: ARG002
        """Read the meter; `nodes` are those online."""
        return Reading((), lambda _: {})

    def summary(self) -> dict[str, Any]:
        """Sum the whole run up."""
        return {}

    def save(self) -> dict[str, Any]:
        """Give what a checkpoint keeps."""
        return {name: getattr(self, name) for name in self.kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `save` gave."""
        for name in self.kept:
            setattr(self, name, state[name])


def added(node: SimulatedClient, envelopes: Sequence[Envelope]) -> list[int]:
    """Say how much new mass each envelope carries that an event has just made."""
    unsettled = node.client.peer.unsettled
    return [unsettled[envelope.receiver][1] for envelope in envelopes]
