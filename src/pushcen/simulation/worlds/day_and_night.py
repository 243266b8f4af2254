"""Made-up availability traces of days and nights, in the format of `traces.py`."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from pushcen.checks import check_count, check_number
from pushcen.errors import OptionError
from pushcen.streams import stream

HOUR, DAY = 3600, 86_400
AT_NIGHT = (0.8, 0.8, 0.8, 0.8, 0.8, 0.7, 0.4, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.2, 0.3,
            0.4, 0.6, 0.7)  # fmt: skip
"""The share of devices online at each full hour, of phones that charge at night. It is made up, not measured."""


def day_and_night(
    clients: int, days: int = 7, seed: int = 0, online: Sequence[float] = AT_NIGHT, zones: Sequence[float] = (0.0,)
) -> dict[str, dict[str, Any]]:
    """Return a trace in which at every moment of a local day the given share of all devices is online.

    `online` has the share at each full hour, and in between a straight line. A device lives in one of the `zones` (in
    hours, drawn), and has a number from 0 to 1 for each of its days (drawn at midnight): it is online while that is
    below the share. So a device comes and goes a few times a day, at other hours on other days. Times are in seconds.

    >>> trace = day_and_night(clients=2, days=1, seed=1)
    >>> trace["0"]["finish_time"], len(trace["0"]["active"]) == len(trace["0"]["inactive"])
    (86400, True)
    """
    check_count("clients", clients, 1)
    check_count("days", days, 1, 10_000)
    check_count("seed", seed, most=2**63 - 1)
    if len(online) != 24:
        raise OptionError(f"online = {list(online)!r}: must be 24 shares, one for each hour of the day")
    for share in online:
        check_number("online", share, 0, 1)
    if not any(online):
        raise OptionError("online = 0: must be above 0 at some hour")
    for zone in zones:
        check_number("zones", zone, -24, 24)
    if not zones:
        raise OptionError("zones = []: must have at least one")
    return {str(client): _device(client, days, seed, online, zones) for client in range(clients)}


def _device(client: int, days: int, seed: int, online: Sequence[float], zones: Sequence[float]) -> dict[str, Any]:
    rng = stream(seed, "day and night", client)
    offset = round(rng.choice(zones) * HOUR)
    spans: list[tuple[int, int]] = []
    while not spans:  # a device that never was online would not be in a trace
        drawn = [rng.random() for _ in range(days)]
        local = [span for day in range(days) for span in _day(day, drawn[day], online)]
        spans = _joined(sorted(_shifted(local, offset, days * DAY)))
    active, inactive = ([span[end] for span in spans] for end in (0, 1))
    return {"active": active, "inactive": inactive, "finish_time": days * DAY}


def _day(day: int, drawn: float, online: Sequence[float]) -> Iterator[tuple[int, int]]:
    """Yield when a device is online on one of its days: in each hour, where the line of shares is above its number."""
    for hour in range(24):
        first, last = online[hour], online[(hour + 1) % 24]
        start, end = 0.0, 1.0
        if first <= drawn and last <= drawn:
            continue
        if first <= drawn:
            start = (drawn - first) / (last - first)
        elif last <= drawn:
            end = (first - drawn) / (first - last)
        begins = day * DAY + hour * HOUR
        span = begins + math.ceil(start * HOUR), begins + math.ceil(end * HOUR)
        if span[0] < span[1]:
            yield span


def _shifted(spans: Sequence[tuple[int, int]], offset: int, cycle: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of a device whose midnight is `offset` earlier; what is cut off comes back at the other end."""
    for start, end in spans:
        start, end = (start - offset) % cycle, (start - offset) % cycle + end - start
        yield start, min(end, cycle)
        if end > cycle:
            yield 0, end - cycle


def _joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, end in spans:
        if found and found[-1][1] == start:
            found[-1] = found[-1][0], end
        else:
            found.append((start, end))
    return found
