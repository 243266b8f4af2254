"""Checks of options. An error has the option's own name, its value, and what would be right.

Whoever builds a section puts the section's name before it: `loss` becomes `network.loss` (`pushcen.errors.renamed`). An
error therefore names every option, a second one too, as `name = value`.
"""

import math
import sys
from collections.abc import Sequence
from typing import Any, TypeGuard

from pushcen.errors import OptionError


def check_number(
    name: str, value: Any, least: float = 0.0, most: float = math.inf, *, above: bool = False, below: bool = False
) -> None:
    """Refuse what is not a finite number from `least` (or `above` it) to `most` (or `below` it).

    >>> check_number("loss", 1.5, 0, 1)
    Traceback (most recent call last):
    pushcen.errors.OptionError: loss = 1.5: must be a number from 0 to 1
    >>> check_number("test_share", 1, 0, 1, below=True)
    Traceback (most recent call last):
    pushcen.errors.OptionError: test_share = 1: must be a number, at least 0 and less than 1
    """
    if not is_finite(value) or value < least or value > most or (above and value == least) or (below and value == most):
        raise OptionError(f"{name} = {value!r}: must be a number{_range(least, most, above, below)}")


def is_finite(value: Any) -> TypeGuard[float]:
    """Return whether a value is a number that a float can be; JSON has whole numbers of any length.

    >>> is_finite(3), is_finite(10**400), is_finite(True), is_finite("3")
    (True, False, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def check_count(name: str, value: Any, least: int = 0, most: float = math.inf) -> None:
    """Refuse what is not a whole number from `least` to `most`.

    >>> check_count("clients", 0, 1)
    Traceback (most recent call last):
    pushcen.errors.OptionError: clients = 0: must be a whole number, 1 or more
    """
    if type(value) is not int or not least <= value <= most:
        raise OptionError(f"{name} = {value!r}: must be a whole number{_range(least, most)}")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Refuse what is not one of the choices.

    >>> check_choice("collect", "middle", ("end", "start"))
    Traceback (most recent call last):
    pushcen.errors.OptionError: collect = 'middle': must be one of end, start
    """
    if value not in choices:
        raise OptionError(f"{name} = {value!r}: must be one of {', '.join(choices)}")


def check_order(name: str, value: float, bound_name: str, bound: float) -> None:
    """Refuse a value above that of another option; either of the two may be the one to change.

    >>> check_order("size", 50, "bound", 40)
    Traceback (most recent call last):
    pushcen.errors.OptionError: size = 50: must be at most bound = 40
    """
    if value > bound:
        raise OptionError(f"{name} = {value!r}: must be at most {bound_name} = {bound!r}")


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither true nor false.

    >>> check_flag("farewell", "yes")
    Traceback (most recent call last):
    pushcen.errors.OptionError: farewell = 'yes': must be true or false
    """
    if not isinstance(value, bool):
        raise OptionError(f"{name} = {value!r}: must be true or false")


def _range(least: float, most: float, above: bool = False, below: bool = False) -> str:
    low, high = _shown(least), _shown(most)
    if math.isinf(most):
        return f" above {low}" if above else f", {low} or more"
    if above or below:
        return f", {'above' if above else 'at least'} {low} and {'less than' if below else 'at most'} {high}"
    return f" from {low} to {high}"


def _shown(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"
