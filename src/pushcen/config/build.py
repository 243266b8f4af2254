"""Between plain values, as TOML and flags have them, and the frozen dataclasses that the other packages define.

A section is a dataclass, its fields are the options: each is defined once, where it is used. Types are checked by
pydantic, strictly; ranges by the dataclass itself. All mistakes are reported at once, a line each.
"""

import dataclasses
import functools
import json
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar, get_type_hints

import pydantic

from pushcen.config.wording import describe, listed, nearest, shown
from pushcen.errors import ConfigError, PushcenError, renamed

T = TypeVar("T")


class Text(str):
    """A value as it was typed in a flag: its option's type decides whether `16` is a number or a text."""


class Registry(NamedTuple):
    """Classes of a section that is chosen by its `name`."""

    find: Callable[[str], type]
    """Returns the class, or raises a PushcenError that says which names there are."""
    name: Callable[[type], str]
    """Returns the name by which `find` finds the class."""


class Builder:
    """Builds dataclasses from plain values; `chosen` has the registry of each section that is picked by name.

    >>> @dataclasses.dataclass(frozen=True)
    ... class NetworkOptions:
    ...     loss: float = 0.0
    ...     latency: float = 0.0
    >>> @dataclasses.dataclass(frozen=True)
    ... class Config:
    ...     clients: int = 20
    ...     network: NetworkOptions = NetworkOptions()
    >>> Builder().build(Config, {"network": {"loss": Text("0.1")}})
    Config(clients=20, network=NetworkOptions(loss=0.1, latency=0.0))
    >>> Builder().build(Config, {"clients": "many", "network": {"los": 0.1}})
    Traceback (most recent call last):
    pushcen.errors.ConfigError: clients = 'many': must be a whole number
    network.los = 0.1: no such key. Did you mean network.loss? network has loss, latency
    """

    def __init__(self, chosen: Mapping[type, Registry] | None = None) -> None:
        self._chosen = dict(chosen or {})

    def build(self, kind: type[T], values: Mapping[str, Any], at: str = "") -> T:
        """Return a `kind` with these values and else the defaults, or raise a ConfigError that lists all mistakes.

        `at` is what its keys begin with: `network.`.
        """
        problems: list[str] = []
        built = self._section(kind, values, at, problems, list(self.keys(kind, values, at)))
        if problems:
            raise ConfigError("\n".join(problems))
        assert isinstance(built, kind)
        return built

    def keys(self, kind: type, values: Mapping[str, Any], at: str = "") -> Iterator[str]:
        """Yield every key that a config of this kind may have, in full: `network.loss`."""
        for name, hint in hints(kind).items():
            yield at + name
            if hint in self._chosen:
                yield f"{at}{name}.name"
            if (section := self._class(hint, values.get(name))) is not None:
                inner = values.get(name)
                yield from self.keys(section, inner if isinstance(inner, Mapping) else {}, f"{at}{name}.")

    def plain(self, section: Any) -> dict[str, Any]:
        """Return a dataclass as plain values, the inverse of `build`; what is None is left out: TOML has no null."""
        values: dict[str, Any] = {}
        for base, registry in self._chosen.items():
            if isinstance(section, base):
                values["name"] = registry.name(type(section))
        kind: Any = type(section)
        for name in hints(kind):
            value = getattr(section, name)
            if dataclasses.is_dataclass(value):
                values[name] = self.plain(value)
            elif value is not None:
                values[name] = list(value) if isinstance(value, tuple | list) else value
        return values

    def _class(self, hint: Any, values: Any) -> type | None:
        """Return the dataclass of a section, or None for a plain option or a name that is not known."""
        if hint in self._chosen:
            name = values.get("name") if isinstance(values, Mapping) else None
            try:
                return self._chosen[hint].find(name) if isinstance(name, str) else None
            except PushcenError:
                return None
        return hint if isinstance(hint, type) and dataclasses.is_dataclass(hint) else None

    def _section(self, kind: type, values: Any, at: str, problems: list[str], known: list[str]) -> Any:
        if not isinstance(values, Mapping):
            problems.append(f"{at.rstrip('.')} = {values!r}: must be a section, with {listed(hints(kind))}")
            return None
        before = len(problems)
        fields = hints(kind)
        found: dict[str, Any] = {}
        for name, value in values.items():
            if name not in fields:
                problems.append(f"{at}{name} = {shown(value)}: no such key. {nearest(at, name, fields, known)}")
            elif fields[name] in self._chosen:
                found[name] = self._by_name(fields[name], value, f"{at}{name}.", problems, known)
            elif dataclasses.is_dataclass(fields[name]):
                found[name] = self._section(fields[name], value, f"{at}{name}.", problems, known)
            else:
                found[name] = _option(fields[name], value, at + name, problems)
        if len(problems) > before:
            return None
        try:
            return kind(**found)
        except (
            PushcenError,
            TypeError,
        ) as error:  # out of range, by the option's own name; or missing
            problems.append(_with_keys(at, fields, error))
            return None

    def _by_name(self, kind: type, values: Any, at: str, problems: list[str], known: list[str]) -> Any:
        values = {"name": values} if isinstance(values, str) else values
        if not isinstance(values, Mapping) or not isinstance(values.get("name"), str):
            problems.append(f"{at}name: is missing; it says which one")
            return None
        try:
            chosen = self._chosen[kind].find(str(values["name"]))
        except PushcenError as error:
            problems.append(_with_keys(at, ["name"], error))
            return None
        return self._section(chosen, {k: v for k, v in values.items() if k != "name"}, at, problems, known)


@functools.cache
def hints(kind: Any) -> dict[str, Any]:
    """Return the type of each field that can be set."""
    names = sys.modules[kind.__module__].__dict__  # a subclass knows what its base names for type checkers only
    found = get_type_hints(kind, localns=names, include_extras=True)
    return {field.name: found[field.name] for field in dataclasses.fields(kind) if field.init}


@functools.cache
def _adapter(hint: Any) -> "pydantic.TypeAdapter[Any]":
    return pydantic.TypeAdapter(hint)


def _option(hint: Any, value: Any, key: str, problems: list[str]) -> Any:
    readings = [_typed(value), str(value)] if isinstance(value, Text) else [_table(value)]
    for reading in readings:
        try:  # as JSON, where a list may be a tuple and nothing else is bent: "1" is no number, 1 is no text
            return _adapter(hint).validate_json(json.dumps(reading), strict=True)
        except (pydantic.ValidationError, TypeError):
            continue
    problems.append(f"{key} = {shown(value)}: must be {describe(hint)}")
    return None


def _with_keys(at: str, names: Iterable[str], error: Exception) -> str:
    """Return the error of a section with the full keys of its options."""
    said = renamed(str(error), {name: at + name for name in names})
    return said if said.startswith(at) else f"{at.rstrip('.')}: {said}"


def _table(value: Any) -> Any:
    """Return a value; in a table that has no types of its own, a flag's text is what TOML makes of it."""
    if isinstance(value, Mapping):
        return {name: _table(inner) for name, inner in value.items()}
    return _typed(value) if isinstance(value, Text) else value


def _typed(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        try:
            return float(text)  # .5
        except ValueError:
            return str(text)
