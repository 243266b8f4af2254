"""Meters: each measures one thing, and can be switched off. docs/simulation.md has the paper's symbols."""

from typing import TYPE_CHECKING

from pushcen.simulation.meters.events import Events
from pushcen.simulation.meters.gradient import Gradient
from pushcen.simulation.meters.kept import Kept
from pushcen.simulation.meters.mailbox import Mailbox
from pushcen.simulation.meters.mass import Mass
from pushcen.simulation.meters.meter import Meter, Reading
from pushcen.simulation.meters.reference import Reference
from pushcen.simulation.meters.traffic import Traffic
from pushcen.simulation.world import METERS

if TYPE_CHECKING:
    from pushcen.simulation.engine import Engine

_ALL: tuple[type[Meter], ...] = (Mass, Traffic, Events, Mailbox, Kept, Reference, Gradient)


def open_meters(engine: "Engine") -> list[Meter]:
    """Make the meters that are on."""
    known = {meter.name: meter for meter in _ALL}
    return [known[name](engine) for name in METERS if name in engine.world.meters.names]


__all__ = ["Meter", "Reading", "open_meters"]
