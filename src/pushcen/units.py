"""Times, sizes and bandwidths as people write them: "200 ms", "1.5 GB", "10 MB/s"; exact until they become floats.

kB, MB, GB, TB are powers of 1,000 and KiB, MiB, GiB, TiB powers of 1,024, all of bytes; kbit, Mbit, Gbit are bits, an
eighth of that. Case counts: "Mb" and "m" may mean two things each, and are refused.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from pushcen.errors import OptionError

TIMES = {
    "us": Fraction(1, 1_000_000),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86_400),
}
SIZES = (
    {"B": Fraction(1), "KB": Fraction(1000), "bit": Fraction(1, 8)}
    | {f"{prefix}B": Fraction(1000**power) for power, prefix in enumerate("kMGT", 1)}
    | {f"{prefix}iB": Fraction(1024**power) for power, prefix in enumerate("KMGT", 1)}
    | {f"{prefix}bit": Fraction(1000**power, 8) for power, prefix in enumerate("kMGT", 1)}
)
RATES = {f"{size}/{time}": a / b for size, a in SIZES.items() for time, b in TIMES.items()} | {
    f"{prefix}bps": Fraction(1000**power, 8) for power, prefix in enumerate("kMGT", 1)
}
NEEDS_TIME_UNIT = "needs time_unit, which says how long a unit of pseudo-time is: '1 min', say"
_SHOWN = {
    "time": "a time such as '200 ms', in us, ms, s, min, h or d",
    "size": "a size such as '1.5 GB', in B, kB, MB, GB, TB, or KiB, MiB, ...",
    "bandwidth": "a bandwidth such as '10 MB/s' or '60 Mbit/s'",
}
_UNITS = {"time": TIMES, "size": SIZES, "bandwidth": RATES}
_WRITTEN = re.compile(
    r"\s*([0-9]{1,40}(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,3})?)\s*([A-Za-z]+(?:\s*/\s*[A-Za-z]+)?)\s*"
)


def read_time(text: str) -> Fraction:
    """Return a time in seconds.

    >>> float(read_time("200 ms")), float(read_time("2h"))
    (0.2, 7200.0)
    >>> read_time("5 m")
    Traceback (most recent call last):
    pushcen.errors.OptionError: '5 m': must be a time such as '200 ms', in us, ms, s, min, h or d
    """
    return _read("time", text)


def read_size(text: str) -> Fraction:
    """Return a size in bytes.

    >>> [float(read_size(text)) for text in ("1.5 GB", "1 MiB", "8 kbit")]
    [1500000000.0, 1048576.0, 1000.0]
    """
    return _read("size", text)


def read_bandwidth(text: str) -> Fraction:
    """Return a bandwidth in bytes per second.

    >>> [float(read_bandwidth(text)) for text in ("10 MB/s", "60 Mbps", "60 Mbit/s", "3.6 GB / h")]
    [10000000.0, 7500000.0, 7500000.0, 1000000.0]
    """
    return _read("bandwidth", text)


def _read(what: str, text: str) -> Fraction:
    found = _WRITTEN.fullmatch(text) if len(text) <= 100 else None
    factor = _UNITS[what].get("".join(found[2].split())) if found else None
    if found is None or factor is None:
        raise OptionError(f"{text[:100]!r}: must be {_SHOWN[what]}")
    return Fraction(found[1]) * factor


@dataclass(frozen=True)
class Measured:
    """Marks an option that may be written with a unit; `what` it is, and the size of one, where that is fixed.

    Without `one` it is counted in units of pseudo-time, which last as long as the world's `time_unit` says.
    """

    what: str
    one: int = 0

    def number(self, text: str, time_unit: Fraction | None) -> float:
        """Return the number that the option has, where it is written with a unit.

        >>> Measured("time").number("90 s", time_unit=Fraction(60)), Measured("size", 1000).number("2 MB", None)
        (1.5, 2000.0)
        >>> Measured("bandwidth").number("1 MB/s", time_unit=None)
        Traceback (most recent call last):
        pushcen.errors.OptionError: '1 MB/s': needs time_unit, which says how long a unit of pseudo-time is: ...
        """
        value = _read(self.what, text)
        if self.one:
            value /= self.one
        elif time_unit is None:
            raise OptionError(f"{text!r}: {NEEDS_TIME_UNIT}")
        else:
            value = value * time_unit if self.what == "bandwidth" else value / time_unit
        try:
            return float(value)
        except OverflowError:
            raise OptionError(f"{text!r}: is too large") from None

    @property
    def in_words(self) -> str:
        """What a text may be."""
        return _SHOWN[self.what]


def time_unit_of(text: str) -> Fraction | None:
    """Return how many seconds a unit of pseudo-time lasts, or None if a world does not say.

    >>> time_unit_of("1 min"), time_unit_of("")
    (Fraction(60, 1), None)
    """
    if not text:
        return None
    seconds = read_time(text)
    if not TIMES["us"] <= seconds <= 10_000 * TIMES["d"]:
        raise OptionError(f"{text!r}: must be a time from 1 us to 10000 d")
    return seconds


PseudoTime = Annotated[float, Measured("time")]
PseudoRate = Annotated[float, Measured("bandwidth")]
Seconds = Annotated[float, Measured("time", 1)]
Kibibytes = Annotated[int, Measured("size", 2**10)]
Mebibytes = Annotated[int, Measured("size", 2**20)]
