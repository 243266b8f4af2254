"""What a value may be, in plain English, from its type."""

import types
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
    """Say what a value of this type may be.

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
    """Join alternatives.

    >>> either(["a", "b", "c"])
    'a, b or c'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
