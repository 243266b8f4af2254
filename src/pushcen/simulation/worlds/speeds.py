"""How fast devices compute and send: from a file of measurements, or drawn from a distribution.

Files are JSON, with an entry for each device, in one of two published formats. FLASH's (Yang et al., WWW 2021,
https://github.com/PKU-Chengxu/FLASH, models/speed_distri.json) has the mean and the standard deviation of a line's
speed, `up_u`, `up_sigma`, `down_u`, `down_sigma`; its program takes them as KiB/s. FedScale's (client_device_capacity)
has `communication`, in kbit/s, and `computation`, the time of a sample.
"""

import statistics
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from pushcen.checks import check_number
from pushcen.errors import OptionError
from pushcen.simulation.worlds.sources import read_json
from pushcen.streams import stream
from pushcen.units import read_bandwidth

LOGNORMAL = "lognormal:"
NAMED = {"flash": Path(__file__).parent / "flash.json"}
_FLASH = ("up_u", "up_sigma", "down_u", "down_sigma")
_SLOWEST = 0.1  # of the mean: slower than that a line is not drawn, or one message might last for ever


class Speed(NamedTuple):
    """The speed of one direction of a line: the mean and the standard deviation over messages, in bytes per time."""

    mean: float
    sigma: float = 0.0

    def draw(self, rng: Random) -> float:
        """Draw the speed of one message: from a normal distribution, again if that is below a tenth of the mean.

        >>> Speed(5.0).draw(Random(0)), min(Speed(5.0, 5.0).draw(Random(seed)) for seed in range(99)) >= 0.5
        (5.0, True)
        """
        if not self.sigma:
            return self.mean
        while (drawn := rng.normalvariate(self.mean, self.sigma)) < _SLOWEST * self.mean:
            pass
        return drawn


class DeviceLine(NamedTuple):
    """A client's line, in both directions."""

    up: Speed
    down: Speed


def is_file(speeds: str) -> bool:
    """Return whether speeds are in a file that the user brings."""
    return bool(speeds) and speeds not in NAMED and not speeds.startswith(LOGNORMAL)


def check_speeds(name: str, speeds: str, known: Sequence[str]) -> None:
    """Refuse a distribution that is none.

    >>> check_speeds("speeds", "lognormal:-1", ())
    Traceback (most recent call last):
    pushcen.errors.OptionError: speeds = 'lognormal:-1': must be lognormal:SIGMA, with SIGMA from 0 to 3
    """
    if speeds.startswith(LOGNORMAL):
        try:
            check_number("sigma", float(speeds.removeprefix(LOGNORMAL)), 0, 3)
        except ValueError:  # an OptionError is one, too
            raise OptionError(f"{name} = {speeds!r}: must be lognormal:SIGMA, with SIGMA from 0 to 3") from None
    elif (is_file(speeds) and not speeds.endswith(".json")) or (speeds in NAMED and speeds not in known):
        names = ", ".join([*known, "lognormal:SIGMA"])
        raise OptionError(f"{name} = {speeds!r}: must be {names}, or a JSON file (docs/simulation.md#device-speeds)")


def factors(speeds: str, clients: int, seed: int, *names: str) -> list[float]:
    """Draw for each client how many times as fast as the median it is: lognormal, and the same for all methods.

    >>> [round(factor, 2) for factor in factors("lognormal:0.5", 3, 0, "compute")]
    [1.2, 0.78, 0.59]
    """
    sigma = float(speeds.removeprefix(LOGNORMAL))
    return [stream(seed, *names, client).lognormvariate(0.0, sigma) for client in range(clients)]


def read_lines(speeds: str, clients: int, seed: int, time_unit: Fraction, unit: str = "") -> list[DeviceLine]:
    """Return the line of each client, in bytes per unit of pseudo-time: that of a device drawn from the file.

    `unit` says what the file's numbers are in, if it is not the usual one of its format.
    """
    said = f"network.speeds = {speeds!r}"
    found = []
    for name, entry in _entries(speeds, said).items():
        where = f"{said}: device {name!r:.80}"
        flash = "communication" not in entry
        one = float(read_bandwidth(f"1 {unit or ('KiB/s' if flash else 'kbit/s')}") * time_unit)
        fields = _FLASH if flash else ("communication",)
        for field in fields:
            if field not in entry:
                raise OptionError(f"{where}: {field}: is missing")
            check_number(f"{where}: {field}", entry[field], most=1e15, above=not field.endswith("sigma"))
        up, up_sigma, down, down_sigma = (
            (entry[field] * one for field in fields) if flash else (entry["communication"] * one, 0.0) * 2
        )
        found.append(DeviceLine(Speed(up, up_sigma), Speed(down, down_sigma)))
    return [stream(seed, "line", client).choice(found) for client in range(clients)]


def read_computation(speeds: str, clients: int, seed: int) -> list[float]:
    """Return how many times as long as the median device of a file each client computes."""
    said = f"compute.speeds = {speeds!r}"
    entries = _entries(speeds, said)
    for name, entry in entries.items():
        if "computation" not in entry:
            raise OptionError(f"{said}: device {name!r:.80}: computation: is missing")
        check_number(f"{said}: device {name!r:.80}: computation", entry["computation"], most=1e15, above=True)
    times = [float(entry["computation"]) for entry in entries.values()]
    median = statistics.median(times)
    for name, time in zip(entries, times, strict=True):
        if not median / 1000 <= time <= median * 1000:
            raise OptionError(
                f"{said}: device {name!r:.80}: computation = {time:g}: is over 1,000 times off the median"
            )
    return [stream(seed, "computation", client).choice(times) / median for client in range(clients)]


def stragglers(share: float, slowdown: float, clients: int, seed: int, *names: str) -> list[float]:
    """Return how many times slower each client is: a share of all, drawn by the seed, by `slowdown`.

    >>> sorted(stragglers(0.5, 5.0, 4, 0, "network"))
    [1.0, 1.0, 5.0, 5.0]
    """
    slow = set(stream(seed, *names, "stragglers").sample(range(clients), round(share * clients)))
    return [slowdown if client in slow else 1.0 for client in range(clients)]


def _entries(speeds: str, said: str) -> dict[str, dict[str, Any]]:
    table = read_json(NAMED.get(speeds, Path(speeds)), said)
    if not isinstance(table, dict) or not table or not all(isinstance(entry, dict) for entry in table.values()):
        raise OptionError(f"{said}: must be an object with an entry for each device (docs/simulation.md#device-speeds)")
    return table
