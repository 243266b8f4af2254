"""What a meter is: docs/adding-a-meter.md has one that is not in the package."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from pushcen.learning import Outcome, Work
from pushcen.protocol import Envelope
from pushcen.simulation.client import SimulatedClient
from pushcen.simulation.executors import Ticket

if TYPE_CHECKING:
    from pushcen.simulation.engine import Engine


class Reading(NamedTuple):
    """Figures for a row of the metrics: `finish` makes them of the tickets' facts, when these are there."""

    tickets: Sequence[Any]
    finish: Callable[[list[Any]], dict[str, Any]]


class Meter:
    """Measures one thing. Whatever it does changes nothing in the world."""

    name: ClassVar[str]
    """What it is called in `meters.names` and in the summary."""
    watches: ClassVar[bool] = False
    """Whether it wants to see every compute event."""
    needs_reference: ClassVar[bool] = False
    """Whether it needs the reference model."""
    measures: ClassVar[bool] = False
    """Whether learners measure drift and distortion, for `collected`."""
    saved: ClassVar[tuple[str, ...]] = ()
    """The attributes that a checkpoint keeps."""

    def __init__(self, engine: "Engine") -> None:
        self.engine = engine

    def stepped(self, node: SimulatedClient, work: Work, envelopes: Sequence[Envelope], ticket: Ticket) -> Any:
        """Observe a compute event whose mass is split and not sent yet; return what `collected` needs."""

    def pushed(self, node: SimulatedClient, envelopes: Sequence[Envelope], masses: Sequence[int]) -> None:
        """Observe envelopes that belong to no compute event, and the new mass that each carries."""

    def lost(self, node: SimulatedClient) -> None:
        """Observe that a client has lost what was folded since its last event."""

    def collected(self, outcome: Outcome, context: Any) -> None:
        """Observe what the event's learner reports."""

    def read(self, nodes: list[SimulatedClient], reference: Ticket | None) -> Reading:  # noqa: ARG002
        """Return figures for a row; `nodes` are the clients online, `reference` the reference model if it is needed."""
        return Reading((), lambda _: {})

    def summary(self) -> dict[str, Any]:
        """Return figures of the whole run, for the summary."""
        return {}

    def save(self) -> dict[str, Any]:
        """Return the state that `restore` takes."""
        return {name: getattr(self, name) for name in self.saved}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        for name in self.saved:
            setattr(self, name, state[name])


def added(node: SimulatedClient, envelopes: Sequence[Envelope]) -> list[int]:
    """Return how much new mass each envelope carries that an event has just made."""
    unsettled = node.client.peer.unsettled
    return [unsettled[envelope.receiver][1] for envelope in envelopes]
