"""Meters: each measures one thing, and can be switched off. docs/simulation.md has the paper's symbols."""

from pushcen.simulation.meters.meter import Meter, Reading
from pushcen.simulation.meters.registry import METERS, check_meters, meter_named, open_meters

__all__ = ["METERS", "Meter", "Reading", "check_meters", "meter_named", "open_meters"]
