"""Logs: a line for people or a JSON object for programs, on stderr; what could be said often is said seldom."""

import json
import logging
import sys
import time
from typing import Any

from pushcen.checks import check_choice

_log = logging.getLogger("pushcen")
_LONGEST = 500  # characters of a text: it may be somebody else's, and megabytes long
FORMATS = ("auto", "text", "json")
"""How logs may look; auto is text on a terminal, and JSON else."""


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {"time": round(record.created, 3), "level": record.levelname.lower(), "event": record.getMessage()}
        fields |= getattr(record, "fields", {})
        if record.exc_info:
            fields["trace"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


class _Sentences(logging.Formatter):
    """`2026-11-17 20:15:03 ward-1: a neighbour is met (neighbour ward-2)`; nothing in it moves a cursor."""

    def format(self, record: logging.LogRecord) -> str:
        fields = dict(getattr(record, "fields", {}))
        peer, said = fields.pop("peer", "pushcen"), [fields.pop(key, "") for key in ("why", "text", "hint")]
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        facts = ", ".join(f"{key.replace('_', ' ')} {_short(value)}" for key, value in fields.items())
        line = ": ".join(filter(None, [f"{when} {peer}: {level}{record.getMessage()}", *map(str, said)]))
        trace = "\n" + self.formatException(record.exc_info) if record.exc_info else ""
        return printable(f"{line} ({facts})" if facts else line, 4 * _LONGEST) + trace


def printable(value: object, longest: int = 300) -> str:
    r"""Return a text that is somebody else's as one short line that does nothing to a terminal.

    >>> printable("\x1b[2Jann\n" + 400 * "x")[:12]
    '?[2Jann?xxxx'
    """
    return "".join(one if one.isprintable() else "?" for one in str(value)[:longest])


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class _Stderr(logging.StreamHandler[Any]):
    """Writes to what is stderr at the time, not to what it was at the start."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr


def set_up(level: str = "info", form: str = "auto") -> None:
    """Send all logs of this process to stderr, in one of the `FORMATS`."""
    check_choice("log-format", form, FORMATS)
    handler = _Stderr()
    people = form == "text" or (form == "auto" and sys.stderr.isatty())
    handler.setFormatter(_Sentences() if people else _Lines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(True)
    logging.getLogger("grpc").setLevel(logging.CRITICAL)  # it writes a traceback for every caller that hangs up


class Log:
    """Says what happens, with fields; `seldom` says the same thing at most once in `every` seconds."""

    def __init__(self, peer: str, every: float = 10.0) -> None:
        self._peer = peer
        self._every = every
        self._said: dict[str, tuple[float, int]] = {}

    def say(self, event: str, *, level: int = logging.INFO, trace: bool = False, **fields: Any) -> None:
        """Log an event; of a long text, the beginning."""
        short = {key: value[:_LONGEST] if isinstance(value, str) else value for key, value in fields.items()}
        _log.log(level, event, exc_info=trace, extra={"fields": {"peer": self._peer, **short}})

    def warn(self, event: str, **fields: Any) -> None:
        """Log a warning."""
        self.say(event, level=logging.WARNING, **fields)

    def seldom(self, key: str, event: str, *, level: int = logging.WARNING, trace: bool = False, **fields: Any) -> bool:
        """Log an event, if nothing was logged under this key for a while, and then how often it was not; return whether
        it was logged.
        """
        now = time.monotonic()
        then, unsaid = self._said.get(key, (-self._every, 0))
        if now - then < self._every:
            self._said[key] = (then, unsaid + 1)
            return False
        if len(self._said) > 1000:
            self._said.clear()
        self._said[key] = (now, 0)
        self.say(event, level=level, trace=trace, **fields, **({"unsaid": unsaid} if unsaid else {}))
        return True
