"""How the tables show their values: shares in percent, differences with their sign, nothing as a dash."""

from collections.abc import Callable
from typing import Any


def text(value: Any) -> str:
    """Show a name or a number as it is.

    >>> text("SWIFT"), text(None), text(0.4)
    ('SWIFT', '-', '0.4')
    """
    return "-" if value is None else str(value)


def decimals(places: int) -> Callable[[float | None], str]:
    """Show so many decimal places.

    >>> decimals(2)(66.224), decimals(2)(None)
    ('66.22', '-')
    """
    return lambda value: "-" if value is None else f"{value:,.{places}f}"


def points(value: float | None) -> str:
    """Show a difference of two percentages.

    >>> points(-1.26), points(0.04)
    ('-1.3', '+0.0')
    """
    return "-" if value is None else f"{value:+.1f}"


def signed_percent(value: float | None) -> str:
    """Show a relative difference.

    >>> signed_percent(-0.0813)
    '-8.13 %'
    """
    return "-" if value is None else f"{100 * value:+.2f} %"


def half(value: float | None) -> str:
    """Show half the width of an interval, in percentage points.

    >>> half(0.84)
    '± 0.8'
    """
    return "-" if value is None else f"± {value:.1f}"
