"""What is wrong with a value, and what would be right, in plain English."""

import difflib
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

_WORDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    type(None): "nothing",
    dict: "a table",
}


def describe(kind: Any) -> str:
    """Return what a value of this type may be, in words.

    >>> describe(Literal["end", "start"]), describe(int | None), describe(tuple[float, ...])
    ("'end' or 'start'", 'a whole number or nothing', 'a list, each a number')
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return describe(arguments[0])
    if origin is Literal:
        return either([repr(value) for value in arguments])
    if origin in (Union, types.UnionType):
        return either([describe(one) for one in arguments])
    if origin in (list, tuple, set, frozenset) or kind in (list, tuple):
        inner = [one for one in arguments if one is not ...]
        return f"a list, each {describe(inner[0])}" if inner else "a list"
    return _WORDS.get(origin or kind, getattr(kind, "__name__", str(kind)).lower())


def either(words: list[str]) -> str:
    """Return alternatives, joined by commas and "or".

    >>> either(["a", "b", "c"])
    'a, b or c'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def shown(value: Any) -> str:
    """Return a value as an error shows it, cut off where it is long.

    >>> shown("high"), len(shown(["high"] * 50))
    ("'high'", 80)
    """
    text = repr(str(value)) if isinstance(value, str) else repr(value)
    return text if len(text) < 80 else text[:76] + " ..."


def nearest(at: str, name: str, fields: Mapping[str, Any], known: list[str]) -> str:
    """Return which key may have been meant by one that does not exist, and which keys there are.

    >>> nearest("network.", "los", {"loss": float}, ["network.loss"])
    'Did you mean network.loss? network has loss'
    """
    same = [key for key in known if key.rpartition(".")[2] == name]
    near = same or difflib.get_close_matches(at + name, known, n=1, cutoff=0.6)
    guess = f"Did you mean {' or '.join(near[:3])}? " if near else ""
    return f"{guess}{at.rstrip('.') or 'The config'} has {listed(fields)}"


def listed(names: Mapping[str, Any]) -> str:
    """Return the names of options, separated by commas."""
    return ", ".join(names) or "no options"
