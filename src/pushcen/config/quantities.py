"""Options that are written with a unit, as the numbers that the other packages read."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from fractions import Fraction
from typing import Any, get_args

from pushcen.config.build import Text, hints
from pushcen.config.wording import shown
from pushcen.errors import OptionError, PushcenError
from pushcen.units import Measured, time_unit_of


def in_numbers(kind: type, values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the nested values of a `kind` with numbers in place of units, and what was wrong with these.

    >>> from pushcen.simulation import World
    >>> in_numbers(World, {"time_unit": "1 min", "horizon": "2 h", "network": {"latency": "1 parsec"}})
    ({'time_unit': '1 min', 'horizon': 120.0, 'network': {}},
     ["network.latency = '1 parsec': must be a number, or a time such as '200 ms', in us, ms, s, min, h or d"])
    """
    problems: list[str] = []
    unit = values.get("time_unit", "")
    try:
        one = time_unit_of(unit) if isinstance(unit, str) else None
    except PushcenError:
        one = Fraction(1)  # the section itself says what is wrong with it
    return dict(_section(kind, values, one, "", problems)), problems


def _section(
    kind: Any, values: Mapping[str, Any], one: Fraction | None, at: str, problems: list[str]
) -> Iterator[tuple[str, Any]]:
    options = hints(kind)
    for name, value in values.items():
        hint = options.get(name)
        if is_dataclass(hint) and isinstance(value, Mapping):
            yield name, dict(_section(hint, value, one, f"{at}{name}.", problems))
        elif isinstance(value, str) and (measured := _measured(hint)) and not _is_number(value):
            try:
                number = measured.number(value, one)
                yield name, int(number) if get_args(hint)[0] is int else number
            except OptionError as error:
                said = str(error).removeprefix(f"{value[:100]!r}: ").replace("must be ", "must be a number, or ")
                problems.append(f"{at}{name} = {shown(value)}: {said}")
        else:
            yield name, value


def _measured(hint: Any) -> Measured | None:
    """Return what an option measures, if it may have a unit."""
    return next((mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Measured)), None)


def _is_number(value: str) -> bool:
    """Return whether a flag's text is a plain number; in a file a text is none."""
    try:
        float(value)
    except ValueError:
        return False
    return isinstance(value, Text)
