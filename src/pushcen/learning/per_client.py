"""Clients that train differently: epochs, batch size and learning rate of each, for the study of unequal clients."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from random import Random
from typing import Any

from pushcen.checks import check_count, check_number
from pushcen.errors import OptionError
from pushcen.learning.mistakes import told
from pushcen.locate import locate

_RIGHT = 'must be a list, a range such as "1..5", or module:function'


@dataclass(frozen=True, slots=True)
class PerClientOptions:
    """What a simulated client has in place of the section's own value, for each option one of three forms.

    - a list: client number i has the entry i, and the list begins again where it ends: `[1, 2, 5]`;
    - a range, which is drawn from by the seed: `"1..5"`; whole numbers alike, learning rates alike in their logarithm;
    - a function of the client's number, by its name: `"module:function"`.

    >>> options = PerClientOptions(epochs=(1, 2, 5), lr="0.001..0.1")
    >>> [options.of_client(client, lambda option: Random(client)) for client in (0, 4)]
    [{'epochs': 1, 'lr': 0.048...}, {'epochs': 2, 'lr': 0.002...}]
    """

    epochs: tuple[int, ...] | str | None = None
    batch: tuple[int, ...] | str | None = None
    lr: tuple[float, ...] | str | None = None

    def __post_init__(self) -> None:
        for name, given in self.given().items():
            if isinstance(given, str):
                if ":" not in given:
                    _check_range(name, given)
            elif not isinstance(given, tuple | list) or not given:
                raise OptionError(f"{name} = {given!r}: {_RIGHT}")
            else:
                object.__setattr__(self, name, tuple(given))
                for value in given:
                    _check(f"{name} = {list(given)!r}: {name}", name, value)

    def given(self) -> dict[str, tuple[float, ...] | str]:
        """Return what is set.

        >>> PerClientOptions(batch=(8, 16)).given()
        {'batch': (8, 16)}
        """
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if value is not None}

    def of_client(self, client: int, stream: Callable[[str], Random]) -> dict[str, Any]:
        """Return what a client has in place of the section's values; `stream` returns its generator of an option."""
        return {name: _value(name, given, client, stream) for name, given in self.given().items()}


def _value(name: str, given: tuple[float, ...] | str, client: int, stream: Callable[[str], Random]) -> float:
    if not isinstance(given, str):
        return given[client % len(given)]
    key = f"training.per_client.{name}"
    if ":" not in given:
        least, most = _check_range(key, given)
        if name != "lr":
            return stream(name).randint(int(least), int(most))
        return min(most, max(least, math.exp(stream(name).uniform(math.log(least), math.log(most)))))
    function = locate(given, key)
    if not callable(function):
        raise OptionError(f"{key} = {given!r}: {function!r:.80} is no function")
    try:
        value = function(client)
    except Exception as error:
        raise OptionError(f"{key} = {given!r}: client {client}: {told(error)}") from error
    value = value.item() if hasattr(value, "item") else value  # NumPy's numbers
    _check(f"{key} = {given!r}: client {client}: {name}", name, value)
    return value  # type: ignore[no-any-return]


def _check_range(name: str, given: str) -> tuple[float, float]:
    """Return the two ends of a range, or refuse it."""
    ends = re.fullmatch(r"(.+?)\.\.(.+)", given)
    option = name.rpartition(".")[2]
    try:
        least, most = (float(end) if option == "lr" else int(end) for end in ends.groups()) if ends else (0, 0)
    except ValueError:
        ends = None
    if ends is None:
        raise OptionError(f"{name} = {given!r}: {_RIGHT}")
    for end in (least, most):
        _check(f"{name} = {given!r}: {option}", option, end)
    if least > most:
        raise OptionError(f"{name} = {given!r}: must not end below where it begins")
    return least, most


def _check(said: str, option: str, value: Any) -> None:
    if option == "lr":
        check_number(said, value, above=True)
    else:
        check_count(said, value, 1)
