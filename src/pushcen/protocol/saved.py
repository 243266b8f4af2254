"""Checks of what was saved, before anything is built of it: whatever is not as it must be is a `ProtocolError`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pushcen.errors import ProtocolError
from pushcen.protocol.mailbox import LOW
from pushcen.protocol.messages import LIMIT, Envelope, PeerId, check_id, sender_of

VERSION = 1
STATUSES = ("open", "leaving", "forgotten")
PARTS = 2**32 - 1
Check = Callable[[Any, str], Any]


def number(value: Any, what: str, least: int = 0, most: int | None = None) -> int:
    """Take `value` for a whole number, if it is one.

    >>> number(2.0, "steps")
    Traceback (most recent call last):
    pushcen.errors.ProtocolError: steps = 2.0: must be a whole number, 0 or more
    """
    if type(value) is not int or value < least or (most is not None and value > most):
        upto = f"from {least} to {most}" if most is not None else f"{least} or more"
        raise ProtocolError(f"{what} = {value!r:.80}: must be a whole number, {upto}")
    return value


def identity(value: Any, _what: str) -> PeerId:
    """Take `value` for an identity."""
    return check_id(value)


def link(value: Any, what: str) -> str:
    """Take `value` for the name of a link: a sender, and perhaps a part."""
    if not isinstance(value, str) or "/" not in value:
        raise ProtocolError(f"{what} = {value!r:.80}: must be a link, sender or sender#part")
    sender = check_id(sender_of(value))
    part = value[len(sender) + 1 :]
    if value != sender and (value[len(sender)] != "#" or not part.isdigit() or str(int(part)) != part or part == "0"):
        raise ProtocolError(f"{what} = {value!r:.80}: must be a link, sender or sender#part")
    return value


def text(value: Any, what: str) -> str:
    """Take `value` for text."""
    if not isinstance(value, str) or not value:
        raise ProtocolError(f"{what} = {value!r:.80}: must be text")
    return value


def sequence(value: Any, what: str, size: int | None = None) -> list[Any]:
    """Take `value` for a list, of `size` if that is given."""
    if not isinstance(value, list | tuple) or (size is not None and len(value) != size):
        raise ProtocolError(f"{what} = {value!r:.80}: must be a list{f' of {size}' if size is not None else ''}")
    return list(value)


def mapping(value: Any, what: str, key: Check, entry: Check = number) -> dict[Any, Any]:
    """Take `value` for a dict with such keys and such values."""
    if not isinstance(value, dict):
        raise ProtocolError(f"{what} = {value!r:.80}: must be a dict")
    return {key(name, what): entry(item, f"{what}[{name!r:.80}]") for name, item in value.items()}


def top(value: Any, what: str) -> tuple[int, int]:
    """Take `value` for a total and a sequence."""
    total, newest = sequence(value, what, 2)
    return number(total, f"{what} total"), number(newest, f"{what} sequence", 0, LIMIT)


def packed_top(value: Any, what: str) -> int:
    """Take `value` for a total and a sequence in one number, as mailboxes have them."""
    number(number(value, what) & LOW, f"{what} sequence", 0, LIMIT)
    return int(value)


def pair(value: Any, what: str) -> tuple[int, int]:
    """Take `value` for two whole numbers, which may be negative."""
    left, lost = sequence(value, what, 2)
    if type(left) is not int or type(lost) is not int:
        raise ProtocolError(f"{what} = {value!r:.80}: must be two whole numbers")
    return left, lost


def envelope(value: Any, what: str) -> Envelope:
    """Take `value` for the fields of an envelope, whatever its payload."""
    sender, receiver, part, newest, total, payload = sequence(value, what, 6)
    return Envelope(
        check_id(sender),
        check_id(receiver),
        number(part, f"{what}.part", 0, PARTS),
        number(newest, f"{what}.sequence", 0, LIMIT),
        number(total, f"{what}.total"),
        payload,
    )


def envelopes(value: Any, what: str) -> dict[str, Envelope]:
    """Take `value` for a list of envelopes, one on each link."""
    found = [envelope(fields, f"{what}[{at}]") for at, fields in enumerate(sequence(value, what))]
    return {one.link: one for one in found}


@contextmanager
def told() -> Iterator[None]:
    """Let whatever is wrong with what was saved be one kind of error."""
    try:
        yield
    except ProtocolError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ProtocolError(f"not a saved peer: {error!r:.200}") from error
