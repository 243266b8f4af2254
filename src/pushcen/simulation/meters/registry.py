"""Meters by name: those here, and `module:Class` in a file of one's own."""

import difflib
from typing import TYPE_CHECKING

from pushcen.errors import OptionError
from pushcen.locate import locate
from pushcen.simulation.meters.consensus import ConsensusMeter
from pushcen.simulation.meters.events import EventMeter
from pushcen.simulation.meters.gradient import GradientMeter
from pushcen.simulation.meters.mailbox import MailboxMeter
from pushcen.simulation.meters.mass import MassMeter
from pushcen.simulation.meters.mass_shift import MassShiftMeter
from pushcen.simulation.meters.meter import Meter
from pushcen.simulation.meters.traffic import TrafficMeter
from pushcen.simulation.meters.waiting import WaitingMeter
from pushcen.simulation.meters.wraps import WrapMeter

if TYPE_CHECKING:
    from pushcen.simulation.engine import Engine

_HERE: tuple[type[Meter], ...] = (
    MassMeter,
    TrafficMeter,
    EventMeter,
    MailboxMeter,
    MassShiftMeter,
    ConsensusMeter,
    GradientMeter,
    WaitingMeter,
    WrapMeter,
)
METERS = tuple(meter.name for meter in _HERE)
"""The names of the meters that are here, in the order of their figures in a row."""


def meter_named(name: str) -> type[Meter]:
    """Find a meter by its name, or by `module:Class` in a file of one's own.

    >>> meter_named("mass").__name__
    'MassMeter'
    >>> meter_named("mess")
    Traceback (most recent call last):
    pushcen.errors.OptionError: meters.names = 'mess': must be of mass, ..., or module:Class; did you mean mass?
    """
    for meter in _HERE:
        if meter.name == name:
            return meter
    if isinstance(name, str) and ":" in name:
        found = locate(name, "meters.names")
        if not (isinstance(found, type) and issubclass(found, Meter)):
            raise OptionError(f"meters.names = {name!r}: {found!r:.80} is no subclass of pushcen.simulation.Meter")
        return found
    near = difflib.get_close_matches(str(name), METERS, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise OptionError(f"meters.names = {name!r}: must be of {', '.join(METERS)}, or module:Class{hint}")


def check_meters(names: tuple[str, ...]) -> list[type[Meter]]:
    """Return the meters of these names, those here first; refuse two that share a name.

    >>> [meter.name for meter in check_meters(("traffic", "mass"))]
    ['mass', 'traffic']
    """
    found = {meter_named(name): name for name in names}
    by_name: dict[str, type[Meter]] = {}
    for meter, name in found.items():
        called = getattr(meter, "name", None)
        if not isinstance(called, str):
            raise OptionError(f"meters.names = {name!r}: the class must have a `name`")
        if called in by_name or (called in METERS and meter not in _HERE):
            raise OptionError(f"meters.names = {name!r}: is called {called!r}, as another meter is")
        by_name[called] = meter
    here = [meter for meter in _HERE if meter in found]
    return here + [meter for meter in found if meter not in _HERE]


def open_meters(engine: "Engine") -> list[Meter]:
    """Return the meters that are on: those of the world, and those without which its method cannot be judged."""
    world, method = engine.world, engine.world.method
    waiting = ("waiting",) if method.rounds else ()
    return [meter(engine) for meter in check_meters((*world.meters.names, *waiting, *method.meters))]
