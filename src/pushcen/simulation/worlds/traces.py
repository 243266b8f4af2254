"""Availability traces in FedScale's format: when each device was there, over and over again.

A trace has for each device `active` and `inactive`, the seconds at which it came and went, and `finish_time`, after
how many seconds it begins again. https://github.com/SymbioticLab/FedScale has one of 107,749 phones (as a pickle, which
is not read here: docs/simulation.md has the line that makes JSON of it).
"""

import bisect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pushcen.errors import OptionError
from pushcen.simulation.worlds.sources import read_json, read_npz
from pushcen.streams import stream

KEY = "participation.trace"
MOST_CHANGES = 10_000_000  # of all clients, before the horizon
Entry = tuple[str, Sequence[float], Sequence[float], float]
"""A device: its name, when it comes, when it goes, and after how long all begins again."""


@dataclass(frozen=True)
class Availability:
    """When one client comes and goes, in pseudo-time: at `changes`, in turn, in every `cycle`.

    The first is when it comes, unless it is there `from_start`.

    >>> day = Availability((6.0, 18.0), 24.0)
    >>> day.is_there(7.0), day.is_there(18.0), day.next_change(18.0), day.next_change(40.0)
    (True, False, 30.0, 42.0)
    """

    changes: tuple[float, ...]
    cycle: float
    from_start: bool = False

    def is_there(self, now: float) -> bool:
        """Return whether the client is there, at `now` and just after it."""
        return self.from_start != (self.changes != () and self._next(now) % 2 == 1)

    def next_change(self, now: float) -> float:
        """Return when the client comes or goes next, after `now`; never, if it is always there."""
        return self._time(self._next(now)) if self.changes else math.inf

    @property
    def share(self) -> float:
        """The share of all time that the client is there."""
        times = (0.0, *self.changes, self.cycle) if self.from_start else self.changes
        return math.fsum(goes - comes for comes, goes in zip(times[::2], times[1::2], strict=True)) / self.cycle

    def _time(self, number: int) -> float:
        """Return the time of a change; they are numbered through all cycles."""
        cycle, at = divmod(number, len(self.changes))
        return cycle * self.cycle + self.changes[at]

    def _next(self, now: float) -> int:
        """Return the number of the first change after `now`, by the very times that `next_change` returns."""
        cycle = max(0, math.floor(now / self.cycle) - 1)
        while cycle * self.cycle + self.changes[-1] <= now:
            cycle += 1
        at = bisect.bisect_right(self.changes, now, key=lambda change: cycle * self.cycle + change)
        return cycle * len(self.changes) + at


def read_trace(path: str, clients: int, seed: int, time_unit: Fraction, horizon: float) -> list[Availability]:
    """Return when each client is there: each has a device of the trace, all different if there are enough of them."""
    said = f"{KEY} = {path!r}"
    devices = list(_npz(Path(path), said) if path.endswith(".npz") else _json(Path(path), said))
    if not devices:
        raise OptionError(f"{said}: has no devices")
    checked = [_changes(device, said) for device in devices]
    order = stream(seed, "trace").sample(range(len(checked)), len(checked))
    found = []
    for client in range(clients):
        changes, cycle = checked[order[client % len(order)]]
        if from_start := changes[0] == 0 and changes[-1] == cycle:
            changes = changes[1:-1]
        in_units = tuple(float(Fraction(change) / time_unit) for change in changes)
        found.append(Availability(in_units, float(Fraction(cycle) / time_unit), from_start))
    total = math.fsum(len(one.changes) * (max(horizon, 1.0) / max(one.cycle, 1e-300)) for one in found)
    if total > MOST_CHANGES:
        raise OptionError(
            f"{said}: its {clients} clients would come and go {total:.3g} times until horizon = {horizon:g}, and may "
            f"{MOST_CHANGES:,} times; is time_unit right?"
        )
    return found


def _json(path: Path, said: str) -> Iterator[Entry]:
    table = read_json(path, said)
    if not isinstance(table, dict):
        raise OptionError(f"{said}: must be an object of device: {{active, inactive, finish_time}}")
    for name, entry in table.items():
        where = f"{said}: client {name!r:.80}"
        if not isinstance(entry, dict):
            raise OptionError(f"{where}: must be an object with active, inactive and finish_time")
        for field in ("active", "inactive", "finish_time"):
            if field not in entry:
                raise OptionError(f"{where}: {field}: is missing")
        for field in ("active", "inactive"):
            if not isinstance(entry[field], list) or not all(map(_is_number, entry[field])):
                raise OptionError(f"{where}: {field}: must be a list of finite numbers")
        if not _is_number(entry["finish_time"]):
            raise OptionError(f"{where}: finish_time: must be a finite number")
        yield name, entry["active"], entry["inactive"], entry["finish_time"]


def _npz(path: Path, said: str) -> Iterator[Entry]:
    arrays = read_npz(path, said, {"active": 1, "inactive": 1, "counts": 1, "finish_time": 1}, {})
    active, inactive, counts, finish = (arrays[name] for name in ("active", "inactive", "counts", "finish_time"))
    if counts.dtype.kind not in "iu" or (counts < 0).any() or len(counts) != len(finish):
        raise OptionError(f"{said}: counts: must be a whole number for each client, as many as finish_time has")
    for name, array in (("active", active), ("inactive", inactive)):
        if sum(map(int, counts)) != len(array):
            raise OptionError(f"{said}: {name}: must have as many numbers as counts add up to")
    start = 0
    for client, count in enumerate(map(int, counts)):
        some = slice(start, start + count)
        yield str(client), active[some].tolist(), inactive[some].tolist(), finish[client].item()
        start += count


def _changes(device: Entry, said: str) -> tuple[list[float], float]:
    """Return when a device comes and goes in turn, and its cycle; refuse what is out of order."""
    name, active, inactive, finish = device
    where = f"{said}: client {name!r:.80}"
    if not finish > 0:
        raise OptionError(f"{where}: finish_time = {finish!r}: must be above 0")
    if not active:
        raise OptionError(f"{where}: active: must have at least one time")
    if len(active) != len(inactive):
        raise OptionError(f"{where}: inactive: must have as many times as active: {len(inactive)} and {len(active)}")
    times: NDArray[np.float64] = np.empty(2 * len(active))
    times[::2], times[1::2] = active, inactive
    wrong = np.flatnonzero(np.diff(times, prepend=0.0, append=float(finish)) < 0)
    if len(wrong):
        at = int(wrong[0])
        field = "finish_time" if at == len(times) else ("active", "inactive")[at % 2]
        what = "active and inactive must rise in turn from 0 to finish_time"
        raise OptionError(f"{where}: {field}: {what}: {times[min(at, len(times) - 1)]:g} is out of order")
    changes: list[float] = []
    for comes, goes in zip(active, inactive, strict=True):
        if comes == goes:
            continue
        if changes and changes[-1] == comes:
            changes[-1] = goes
        else:
            changes += [comes, goes]
    if not changes:
        raise OptionError(f"{where}: active: is never before inactive: this client would never be there")
    return changes, finish


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e18
