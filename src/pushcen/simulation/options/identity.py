"""What makes two runs the same run: every option that their results depend on, by its full key.

An option counts unless its field says otherwise where it is declared, by one of the two marks below. What is missing
in a run's config is the option's default, or what its field's metadata has as `before`: what was done before there was
that option, if that is not the default. Whoever asks whether a run is the same (to resume it, to go on in its folder,
to group seeds, to plan) asks here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

Identity = dict[str, Any]
CARRIED_OUT = {"counts": "never"}
"""Marks a field that only says how a run is carried out."""
ONLY_REAL = {"counts": "real"}
"""Marks a field that only a network of real peers reads."""


def identity_of(
    kind: type, values: Mapping[str, Any], chosen: Mapping[str, type | None], *, real: bool = False
) -> Identity:
    """Return the options in `values` (nested, or by full keys) that count for a `kind`, a dataclass.

    What is missing is the default, where the option is known; `chosen` has the class of each section that is picked by
    name, or None if it is not at hand. `values` may come from a file: nothing in it has to be right.

    >>> from dataclasses import dataclass, field
    >>> @dataclass
    ... class Small:
    ...     seed: int = 0
    ...     loss: float = 0.0
    ...     workers: int = field(default=0, metadata=CARRIED_OUT)
    >>> identity_of(Small, {"seed": 1, "workers": 4}, {})
    {'seed': 1, 'loss': 0.0}
    """
    found: Identity = {}
    beside: tuple[str, ...] = ()
    for key, counts, default in _options(kind, chosen):
        if counts == "never" or (counts == "real" and not real):
            beside += (f"{key}.",)
        if default is not MISSING:
            found[key] = default
    found |= flat(values)
    return {key: _plain(value) for key, value in found.items() if not f"{key}.".startswith(beside)}


def differences(one: Identity, other: Identity) -> list[str]:
    """Return the keys in which two identities differ.

    >>> differences({"seed": 1, "network.loss": 0}, {"seed": 1, "network.loss": 0.1, "horizon": 3})
    ['horizon', 'network.loss']
    """
    return sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))


def flat(values: Mapping[str, Any], at: str = "") -> dict[str, Any]:
    """Return nested values by their full keys.

    >>> flat({"clients": 3, "network": {"loss": 0.1}})
    {'clients': 3, 'network.loss': 0.1}
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= flat(value, f"{at}{name}.") if isinstance(value, Mapping) else {at + name: value}
    return found


def _options(kind: Any, chosen: Mapping[str, type | None], at: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield every section and option: its key, its mark, and the default of an option that has one, as declared."""
    for field in fields(kind):
        if not field.init:
            continue
        key = at + field.name
        default = field.default if field.default_factory is MISSING else field.default_factory()
        default = field.metadata.get("before", default)
        section = chosen[key] if key in chosen else type(default) if is_dataclass(default) else None
        yield key, field.metadata.get("counts", "always"), MISSING if section or key in chosen else default
        if section:
            yield from _options(section, chosen, f"{key}.")


def _plain(value: Any) -> Any:
    """Return a value that can be a key, and is equal however a file wrote it."""
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return _plain(sorted(flat(value).items())) if isinstance(value, Mapping) else value
