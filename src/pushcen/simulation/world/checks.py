"""Checks of options, which name the key, its value, and what it must be."""

import math
from collections.abc import Sequence
from typing import Any

from pushcen.errors import OptionError


def check_number(key: str, value: Any, least: float = 0.0, most: float = math.inf, *, above: bool = False) -> None:
    """Refuse what is not a finite number from `least` (or `above` it) to `most`.

    >>> check_number("network.loss", 1.5, 0, 1)
    Traceback (most recent call last):
    pushcen.errors.OptionError: network.loss = 1.5: must be a number from 0 to 1
    """
    plain = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not plain or value < least or value > most or (above and value == least):
        if math.isinf(most):
            what = f"above {least:g}" if above else f"{least:g} or more"
        else:
            what = f"above {least:g}, and {most:g} at most" if above else f"from {least:g} to {most:g}"
        raise OptionError(f"{key} = {value!r}: must be a number{',' if most == math.inf else ''} {what}")


def check_count(key: str, value: Any, least: int = 0, most: float = math.inf) -> None:
    """Refuse what is not a whole number from `least` to `most`.

    >>> check_count("clients", 0, 1)
    Traceback (most recent call last):
    pushcen.errors.OptionError: clients = 0: must be a whole number, 1 or more
    """
    if type(value) is not int or not least <= value <= most:
        what = f", {least} or more" if math.isinf(most) else f" from {least} to {most}"
        raise OptionError(f"{key} = {value!r}: must be a whole number{what}")


def check_choice(key: str, value: Any, choices: Sequence[str]) -> None:
    """Refuse what is not one of the choices.

    >>> check_choice("collect", "middle", ("end", "start"))
    Traceback (most recent call last):
    pushcen.errors.OptionError: collect = 'middle': must be one of end, start
    """
    if value not in choices:
        raise OptionError(f"{key} = {value!r}: must be one of {', '.join(choices)}")


def check_order(key: str, value: float, bound_key: str, bound: float) -> None:
    """Refuse a value above that of another option; either of the two may be the one to change.

    >>> check_order("neighbours.size", 50, "neighbours.bound", 40)
    Traceback (most recent call last):
    pushcen.errors.OptionError: neighbours.size = 50: must be at most neighbours.bound = 40
    """
    if value > bound:
        raise OptionError(f"{key} = {value!r}: must be at most {bound_key} = {bound!r}")


def check_flag(key: str, value: Any) -> None:
    """Refuse what is neither true nor false."""
    if not isinstance(value, bool):
        raise OptionError(f"{key} = {value!r}: must be true or false")
