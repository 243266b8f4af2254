"""What a reader calls things: a method by its title, an option by its name in the paper or in words."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pushcen.errors import PushcenError
from pushcen.methods import Method, method_named

_PROFILE = "method.profile"
_NAMES = {
    "method.clusters": "K",
    "method.strength": "lambda",
    "method.limit": "L",
    "method.parts": "fragments",
    "method.join_mass": "mass on joining",
    "data.alpha": "alpha",
    "data.source": "data",
    "network.loss": "loss",
    "network.latency": "latency",
}
_WORDS = {
    "method.profile = paper": "the paper's rules",
    "method.profile = default": "",
    "method.scale = sum": "sum of squares",
    "method.scale = mean": "mean of squares",
    "method.mass = keep": "mass kept",
    "method.mass = drop": "mass dropped",
    "method.newest_only = false": "older models kept",
}


def title(name: str) -> str:
    """Return the title, for figures and tables, of the method that a config calls `name`.

    A run folder can cause no import: a method whose module is not loaded goes by the name of its class.

    >>> title("async-dfedavg"), title("my_methods:Prox"), title("gone")
    ('Async-DFedAvg', 'Prox', 'gone')
    """
    kind = _kind(name)
    return kind.title if kind else name.rpartition(":")[2].strip("_ ") or name


def option(method: str, key: str, value: Any) -> str:
    """Return in words that a method, or its world, has this value for this key of the config.

    >>> option("pushcen", "method.strength", 0.1), option("pushcen", "method.profile", "paper")
    ('lambda 0.1', "the paper's rules")
    >>> option("pushcen", "method.mask", False), option("pushcen", "participation.delayed", 0.5)
    ('no mask', 'participation delayed 0.5')
    """
    text = str(value).lower() if isinstance(value, bool) else str(value).removesuffix(".0")
    plain = key.removeprefix("method.").replace("_", " ").replace(".", " ")
    if key == "method.name":
        return title(text)
    if key.startswith("method.") and not _ours(method):
        name = plain
    elif (said := _WORDS.get(f"{key} = {text}")) is not None:
        return said
    else:
        name = _NAMES.get(key, plain)
    return name if text == "true" else f"no {name}" if text == "false" else f"{name} {text}"


def labels(methods: Sequence[str], settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return each run's title and, where several have it, settings enough to tell them apart.

    `settings` are the flat configs, without options that make no other run. Where the paper's rules tell runs apart,
    they stand for all the options that come with them.

    >>> labels(["pushcen", "pushcen", "swift"], [{"method.clusters": 8}, {"method.clusters": 16}, {}])
    ['PushCen, K 8', 'PushCen, K 16', 'SWIFT']
    """
    titles = [title(method) for method in methods]
    found = []
    for own, method, name in zip(settings, methods, titles, strict=True):
        rivals = [other for other, its in zip(settings, titles, strict=True) if its == name]
        keys = _apart(rivals)
        if own.get(_PROFILE) == "paper" and sum(rival.get(_PROFILE) == "paper" for rival in rivals) == 1:
            keys = [_PROFILE]
        parts = [method if key == "method.name" else option(method, key, own[key]) for key in keys if key in own]
        found.append(", ".join([name, *filter(None, parts)]))
    return found


def _apart(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the fewest keys that tell these apart, the method's before the world's; the profile alone, if it does."""
    keys = sorted(key for key in {key for own in settings for key in own} if _count(settings, [key]) > 1)
    keys.sort(key=_PROFILE.__eq__)  # the last to be left out
    different = _count(settings, keys)
    for key in list(keys):
        fewer = [other for other in keys if other != key]
        keys = fewer if _count(settings, fewer) == different else keys
    return sorted(keys, key=lambda key: (key != _PROFILE, not key.startswith("method."), key))


def _count(settings: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> int:
    """Return how many of them these keys tell apart."""
    return len({repr([own.get(key) for key in keys]) for own in settings})


def _kind(name: str) -> type[Method] | None:
    module, colon, kind = name.partition(":")
    if colon:
        found = getattr(sys.modules.get(module), kind, None)
        return found if isinstance(found, type) and issubclass(found, Method) else None
    try:
        return method_named(name)
    except PushcenError:
        return None


def _ours(method: str) -> bool:
    kind = _kind(method)
    return kind is not None and kind.__module__.startswith("pushcen.")
