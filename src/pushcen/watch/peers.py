"""How each peer of a real network is, as its record has it: status, certificate, version, refusals and warnings.

What a file says is checked: known keys, plain and bounded values; texts are whoever's they are, and stay text.
"""

import json
from pathlib import Path
from typing import Any

from pushcen.errors import RunError
from pushcen.watch.lines import MOST_PEERS

_LARGEST = 16 << 20
_MOST = 256  # refusals, problems, neighbours or addresses that are shown
_TEXTS = ("name", "address", "version", "network", "phase", "method")
_COUNTS = ("boot", "events", "models", "bytes_in", "bytes_out")
_LEVELS = ("ok", "warning", "critical")


def read_peers(file: Path) -> dict[str, Any]:
    """Return `peers`, one for each client, and `silent`, addresses that never answered and why; nothing without a file.

    >>> read_peers(Path("no/such/file"))
    {}
    """
    if not file.is_file():
        return {}
    if file.stat().st_size > _LARGEST:
        raise RunError(f"{file}: has {file.stat().st_size:,} bytes, over {_LARGEST:,}")
    try:
        said = json.loads(file.read_bytes())
        peers, silent = said["peers"], said["silent"]
        if len(peers) > MOST_PEERS:
            raise ValueError(f"{len(peers)} peers, {MOST_PEERS} at most")
        return {"peers": [_peer(one) for one in peers], "silent": _table(silent, _text)}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise RunError(f"{file}: is no list of peers: {error!r:.100}") from None


def _peer(said: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {key: _text(said.get(key, "")) for key in _TEXTS}
    found |= {key: _count(said.get(key, 0)) for key in _COUNTS}
    found |= {key: said.get(key) is True for key in ("asked", "online")}
    days = said.get("certificate_days")
    found["certificate_days"] = days if type(days) is int and abs(days) < 1e6 else None
    found["refusals"] = _table(said.get("refusals", {}), _count)
    found["problems"] = [_problem(*one) for one in said.get("problems", [])[:_MOST]]
    found["neighbours"] = [[_text(name), _text(state)] for name, state in said.get("neighbours", [])[:_MOST]]
    return found


def _problem(level: Any, text: Any, hint: Any) -> list[str]:
    if level not in _LEVELS:
        raise ValueError(f"{level!r:.40} is no level")
    return [level, _text(text), _text(hint)]


def _table(said: Any, check: Any) -> dict[str, Any]:
    return {_text(key): check(value) for key, value in list(said.items())[:_MOST]}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return "".join(one if one.isprintable() else "?" for one in value[:500])


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**53:
        raise ValueError(f"{value!r:.40} is no number of something")
    return value
