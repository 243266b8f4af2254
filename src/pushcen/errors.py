"""The errors that pushcen raises on purpose. Each says what was wrong, where, and what would be right."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class PushcenError(Exception):
    """The base of all of them: `except PushcenError` catches what pushcen refuses, and no bug."""


class OptionError(PushcenError, ValueError):
    """An option has a value that it cannot have."""


class ModelError(PushcenError, ValueError):
    """A model or tensor cannot be used as asked: it is not finite, or does not fit the schema."""


class PayloadError(PushcenError, ValueError):
    """Bytes that are not a well-formed payload for this model. Whoever raises it has changed nothing."""


class ProtocolError(PushcenError, ValueError):
    """A message or a call that the protocol's rules forbid. Whoever raises it has changed nothing."""


class DataError(PushcenError, ValueError):
    """A data set that is not known, not there, not well-formed, or cannot be divided as asked."""


class ConfigError(PushcenError, ValueError):
    """A config with unknown keys or impossible values; each has a line."""


class LearningError(PushcenError, ValueError):
    """Training cannot go on: a loss that is not finite, a client without samples, or something that is no task."""


class DivergenceError(LearningError):
    """Training has left the finite numbers: a loss, or weights."""


class TaskError(LearningError):
    """What the user brought cannot be used: a model, data, a loss or a metric of another form than asked for."""


class RunError(PushcenError, ValueError):
    """A run folder that is not there, not one, damaged, or another run's."""


class TransientError(PushcenError):
    """A failure that may have passed by the next try: the same command may be run again. Commands exit with 75."""


class CertificateError(PushcenError):
    """A certificate, a key or a signed record that is missing, unreadable, or not of this network."""


class LedgerError(PushcenError):
    """A state folder that cannot be used or written. What is in it was not touched."""


class DiskError(LedgerError, TransientError):
    """A state folder that cannot be used now: no room on its disk, no descriptor left, a lock, an I/O error."""


class NetworkError(PushcenError):
    """An address that cannot be used, or a neighbour that refused."""


class AddressError(NetworkError, TransientError):
    """An address that cannot be listened on now: another process is there, or the machine does not have it yet."""


def renamed(text: str, keys: Mapping[str, str]) -> str:
    """Return the text of an error with its options renamed to the keys that the user has set.

    Only `name = value` counts as an option, and a full key stays as it is.

    >>> renamed("size = 50: must be at most view.bound = 40", {"size": "view.size", "bound": "view.bound"})
    'view.size = 50: must be at most view.bound = 40'
    """
    names = "|".join(map(re.escape, keys))
    return re.sub(rf"(?<![\w.])({names})(?= = )", lambda found: keys[found[1]], text) if keys else text


@contextmanager
def called(**keys: str) -> Iterator[None]:
    """Rename, in errors raised within this context, options to the keys that the user has set.

    >>> with called(k="neighbours.degree"):
    ...     raise OptionError("k = 9: must be from 1 to 3")
    Traceback (most recent call last):
    pushcen.errors.OptionError: neighbours.degree = 9: must be from 1 to 3
    """
    try:
        yield
    except PushcenError as error:
        raise type(error)(renamed(str(error), keys)) from error
