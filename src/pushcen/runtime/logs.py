"""Structured logs: one JSON object a line on stderr; what could be said often is said at a bounded rate."""

import json
import logging
import sys
import time
from typing import Any

_log = logging.getLogger("pushcen")
_LONGEST = 500  # characters of a text: it may be somebody else's, and megabytes long


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {"time": round(record.created, 3), "level": record.levelname.lower(), "event": record.getMessage()}
        fields |= getattr(record, "fields", {})
        if record.exc_info:
            fields["trace"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


class _Stderr(logging.StreamHandler[Any]):
    """Writes to what is stderr at the time, not to what it was at the start."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr


def set_up(level: str = "info") -> None:
    """Send all logs of this process to stderr as JSON lines."""
    handler = _Stderr()
    handler.setFormatter(_Lines())
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

    def seldom(self, key: str, event: str, *, level: int = logging.WARNING, trace: bool = False, **fields: Any) -> None:
        """Log an event, if nothing was logged under this key for a while; and then how often it was not."""
        now = time.monotonic()
        then, unsaid = self._said.get(key, (-self._every, 0))
        if now - then < self._every:
            self._said[key] = (then, unsaid + 1)
            return
        if len(self._said) > 1000:
            self._said.clear()
        self._said[key] = (now, 0)
        self.say(event, level=level, trace=trace, **fields, **({"unsaid": unsaid} if unsaid else {}))
