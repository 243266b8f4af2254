"""Checks of a record's lines, which may come from anybody: what is returned has known keys and plain, bounded values.

The only free text is why a compute event failed; whoever shows it must show it as text.
"""

import re
from collections.abc import Callable
from typing import Any

from pushcen.checks import is_finite
from pushcen.record import VERSION, VISITS

Line = list[Any]
Facts = dict[str, Any]
MOST_CLIENTS = 100_000
MOST_PEERS = 2_000
"""Of a real network, whose clients have names."""
BORN = 10**10
"""Where numbers of compute events begin in the record of a real network: there they are milliseconds."""
SAFE = 2**53 - 1
"""The largest whole number that JavaScript has."""
HUGE = 1e300
"""A figure that is larger is not shown: differences of such ones are no numbers any more."""
_NUMBER = re.compile(r"[0-9]{1,6}")
_QUANTA = re.compile(r"-?[0-9]{1,40}")
_BOOK = ("founded", "held", "waiting", "folded", "under_way", "written_off", "missing")
_TEXT = 300  # letters
_WORD = re.compile(r"[a-z][a-z ]{0,29}")
_LEVELS = ("ok", "warning", "critical")
_NUMBERS = 200_000  # of labels, in all


class LineError(ValueError):
    """A line is not what it should be."""


def events_head(line: Any) -> Facts:
    """Return the head of the events, checked.

    >>> events_head({"version": 2})
    Traceback (most recent call last):
    pushcen.watch.lines.LineError: version = 2: must be 1
    """
    head = _head(line)
    clients = head["clients"]
    joins = line.get("joins")
    _need(isinstance(joins, dict) and len(joins) <= clients, "joins", joins)
    return (
        head
        | {
            "horizon": _time(line.get("horizon"), "horizon"),
            "every": _whole(line.get("every"), "every", 1),
            "instant": line.get("instant") is True,
            "founded": None if line.get("founded") is None else _quanta(line["founded"], "founded"),
            "joins": {
                str(_client(int(name) if _NUMBER.fullmatch(name) else name, clients)): _time(t)
                for name, t in joins.items()
            },
            "samples": None if line.get("samples") is None else _each(line["samples"], "samples", clients, _whole),
            "online": [_client(client, clients) for client in _list(line.get("online"), "online")],
        }
        | _more(line, clients)
    )


def _more(line: Facts, clients: int) -> Facts:
    """Return what not every head has: names of peers and that time is in seconds; how labels are distributed."""
    found: Facts = {}
    if line.get("names") is not None:
        _need(clients <= MOST_PEERS, "clients", clients)
        found["names"] = _each(line["names"], "names", clients, _short)
    if line.get("seconds") is True:
        found["seconds"] = True
    if line.get("labels") is not None:
        classes = _list(line["labels"], "labels")
        _need(len(classes) * clients <= _NUMBERS, "labels", len(classes))
        found["labels"] = [_each(counts, "labels", clients, _whole) for counts in classes]
    return found


def states_head(line: Any) -> Facts:
    """Return the head of the states, checked."""
    return _head(line)


def event(line: Any, head: Facts, since: float) -> Line:
    """Return an event, checked, that is not before `since`.

    >>> event(["p", 1.0, 3, "joins"], {"clients": 2}, 0.0)
    Traceback (most recent call last):
    pushcen.watch.lines.LineError: client = 3: must be less than 2
    """
    clients = head["clients"]
    kind = line[0] if isinstance(line, list) and len(line) > 2 and isinstance(line[0], str) else None
    size = _SIZES.get(kind or "")
    if kind is None or size != len(line):
        raise LineError(f"{line!r:.80}: is no event")
    found: Line = [kind, _time(line[1], least=since), _client(line[2], clients)]
    if kind == "p":
        _need(line[3] in VISITS, "visit", line[3])
        return [*found, line[3]]
    if kind == "x":
        return [*found, _client(line[3], clients), _whole(line[4], "share")]
    if kind == "r":
        _need(isinstance(line[4], str) and _WORD.fullmatch(line[4]) is not None, "reason", line[4])
        return [*found, None if line[3] is None else _client(line[3], clients), line[4]]
    if kind == "w":
        _need(line[3] in _LEVELS, "level", line[3])
        return [*found, line[3], _short(line[4], "kind")]
    if kind in "ald":
        return [*found, _client(line[3], clients), _whole(line[4], "born")]
    found += [_whole(line[3], "born"), _quanta(line[4], "held") if kind == "m" else _whole(line[4], "bytes")]
    width = 3 if kind == "m" else 2
    numbers = [_whole(number) for number in _list(line[5], "list")]
    _need(len(numbers) % width == 0, "length of a list", len(numbers))
    for client in numbers[::width]:
        _client(client, clients)
    return [*found, numbers] + (
        [[_client(client, clients) for client in _list(line[6], "list")]] if kind == "s" else []
    )


_SIZES = {"m": 6, "s": 7, "a": 5, "l": 5, "d": 5, "p": 4, "x": 5, "r": 5, "w": 5}


def state(line: Any, head: Facts, since: float) -> Facts:
    """Return how clients stood at a moment, or that an event failed, checked."""
    _need(isinstance(line, dict), "state", line)
    clients = head["clients"]
    found: Facts = {"t": _time(line.get("t"), least=since)}
    if "failed" in line:
        _need(isinstance(line.get("why"), str), "why", line.get("why"))
        return found | {"failed": _client(line["failed"], clients), "why": line["why"][:_TEXT]}
    found["steps"] = _whole(line.get("steps"), "steps")
    if "book" in line:
        book = line["book"]
        _need(isinstance(book, dict), "book", book)
        found["book"] = {name: _quanta(book.get(name), name) for name in _BOOK} | {"exact": book.get("exact") is True}
        if book.get("near") is True:
            found["book"]["near"] = True
    if "held" in line:
        online = line.get("online")
        _need(isinstance(online, str) and re.fullmatch(f"[01]{{{clients}}}", online) is not None, "online", online)
        found["online"] = online
        for name in ("held", "waiting"):
            text = line.get(name)
            _need(isinstance(text, str), name, text)
            found[name] = " ".join(_each(text.split(" "), name, clients, _perhaps_quanta))
        for name in ("sent", "lost"):
            found[name] = _each(line.get(name), name, clients, _whole)
        found["metric"] = _each(line.get("metric"), "metric", clients, _measured)
    return found


def _head(line: Any) -> Facts:
    _need(isinstance(line, dict), "head", line)
    if line.get("version") != VERSION:
        raise LineError(f"version = {line.get('version')!r:.40}: must be {VERSION}")
    clients = _whole(line.get("clients"), "clients", 1)
    _need(clients <= MOST_CLIENTS, "clients", clients)
    return {"clients": clients, "since": _time(line.get("since"), "since")}


def _need(right: bool, name: str, value: Any) -> None:
    if not right:
        raise LineError(f"{name} = {value!r:.80}: is not what a record has there")


def _time(value: Any, name: str = "time", least: float = 0.0) -> float:
    _need(is_finite(value) and least <= value <= SAFE, name, value)
    return float(value)


def _whole(value: Any, name: str = "number", least: int = 0) -> int:
    _need(type(value) is int and least <= value <= SAFE, name, value)
    return int(value)


def _client(value: Any, clients: int) -> int:
    if _whole(value, "client") >= clients:
        raise LineError(f"client = {value}: must be less than {clients}")
    return int(value)


def _quanta(value: Any, name: str) -> str:
    _need(isinstance(value, str) and _QUANTA.fullmatch(value) is not None, name, value)
    return str(value)


def _perhaps_quanta(value: Any, name: str) -> str:
    return "-" if value == "-" else _quanta(value, name)


def _short(value: Any, name: str) -> str:
    _need(isinstance(value, str), name, value)
    return "".join(one if one.isprintable() else "?" for one in value[:100])


def _measured(value: Any, name: str) -> float | None:
    _need(value is None or is_finite(value), name, value)
    return None if value is None or abs(value) > HUGE else float(value)


def _list(value: Any, name: str) -> list[Any]:
    _need(isinstance(value, list), name, value)
    return list(value)


def _each(values: Any, name: str, clients: int, check: Callable[[Any, str], Any]) -> list[Any]:
    _need(isinstance(values, list) and len(values) == clients, name, values)
    return [check(value, name) for value in values]
