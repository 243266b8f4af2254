"""Meters: each measures one thing, and can be switched off. docs/simulation.md has the paper's symbols."""

from typing import TYPE_CHECKING

from pushcen.simulation.meters.events import EventMeter
from pushcen.simulation.meters.gradient import GradientMeter
from pushcen.simulation.meters.kept import MassShiftMeter
from pushcen.simulation.meters.mailbox import MailboxMeter
from pushcen.simulation.meters.mass import MassMeter
from pushcen.simulation.meters.meter import Meter, Reading
from pushcen.simulation.meters.reference import ConsensusMeter
from pushcen.simulation.meters.traffic import TrafficMeter
from pushcen.simulation.options import METERS

if TYPE_CHECKING:
    from pushcen.simulation.engine import Engine

_ALL: tuple[type[Meter], ...] = (
    MassMeter,
    TrafficMeter,
    EventMeter,
    MailboxMeter,
    MassShiftMeter,
    ConsensusMeter,
    GradientMeter,
)


def open_meters(engine: "Engine") -> list[Meter]:
    """Make the meters that are on."""
    known = {meter.name: meter for meter in _ALL}
    return [known[name](engine) for name in METERS if name in engine.world.meters.names]


__all__ = ["Meter", "Reading", "open_meters"]
