"""Numbers as people read them; what is not there is a dash. MB are 10^6 bytes, as in the paper."""

from collections.abc import Callable
from typing import Any

_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share of one in percent, without the sign.

    >>> percent(0.66224), percent(None)
    ('66.2', '-')
    """
    return "-" if share is None else f"{100 * share:.{digits}f}"


def size(count: float | None) -> str:
    """Return a number of bytes in the unit that fits.

    >>> size(1_621_000), size(12), size(None)
    ('1.62 MB', '12 B', '-')
    """
    return "-" if count is None else _scaled(count, "B", ("", "k", "M", "G", "T", "P"))


def unit(largest: float) -> tuple[float, str]:
    """Return the unit for an axis of bytes that goes up to `largest`, and its size in bytes.

    >>> unit(11.5e9), unit(766_000)
    ((1000000000.0, 'GB'), (1000.0, 'kB'))
    """
    return next(((bytes_, name) for bytes_, name in _UNITS if largest >= bytes_), (1.0, "B"))


def flops(count: float | None) -> str:
    """Return a number of floating-point operations, with its prefix.

    >>> flops(4.15e9)
    '4.15 G'
    """
    return "-" if count is None else _scaled(count, "", ("", "k", "M", "G", "T", "P", "E"))


def number(count: float | None) -> str:
    """Return a plain number: whole where it is, or from a thousand on, else with three digits.

    >>> number(12345), number(7104.5), number(0.000123456), number(None)
    ('12,345', '7,104', '0.000123', '-')
    """
    if count is None:
        return "-"
    return f"{count:,.0f}" if count == int(count) or abs(count) >= 1000 else f"{count:.3g}"


def duration(seconds: float | None) -> str:
    """Return a time span of the real clock.

    >>> duration(3.14159), duration(125), duration(7384), duration(None)
    ('3.1 s', '125 s', '2 h 3 min', '-')
    """
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 600:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def text(value: Any) -> str:
    """Return a name or a number as it is.

    >>> text("SWIFT"), text(None), text(0.4)
    ('SWIFT', '-', '0.4')
    """
    return "-" if value is None else str(value)


def decimals(places: int) -> Callable[[float | None], str]:
    """Return a function that shows a number with so many decimal places.

    >>> decimals(2)(66.224), decimals(2)(None)
    ('66.22', '-')
    """
    return lambda value: "-" if value is None else f"{value:,.{places}f}"


def points(value: float | None) -> str:
    """Return a difference of two percentages, with its sign.

    >>> points(-1.26), points(0.04)
    ('-1.3', '+0.0')
    """
    return "-" if value is None else f"{value:+.1f}"


def signed_percent(value: float | None) -> str:
    """Return a relative difference in percent, with its sign.

    >>> signed_percent(-0.0813)
    '-8.13 %'
    """
    return "-" if value is None else f"{100 * value:+.2f} %"


def half(value: float | None) -> str:
    """Return half the width of an interval, in percentage points.

    >>> half(0.84)
    '± 0.8'
    """
    return "-" if value is None else f"± {value:.1f}"


def _scaled(value: float, unit: str, prefixes: tuple[str, ...]) -> str:
    at = 0
    while abs(value) >= 999.5 and at < len(prefixes) - 1:
        value, at = value / 1000, at + 1
    prefix = prefixes[at]
    text = f"{value:.3g}" if value != int(value) or prefix else f"{value:.0f}"
    return f"{text} {prefix}{unit}".rstrip()
