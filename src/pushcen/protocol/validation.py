"""Checks of what a peer is given, before anything changes: what was saved, receivers of a push, envelopes.

Whatever is not as it must be is a `ProtocolError`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pushcen.errors import ProtocolError
from pushcen.protocol.mailbox import LOW
from pushcen.protocol.messages import LIMIT, Contact, Envelope, PeerId, check_id, sender_of

VERSION = 1
STATUSES = ("open", "leaving", "forgotten")
PARTS = 2**32 - 1
Check = Callable[[Any, str], Any]
_LISTS = (list, tuple)


def number(value: Any, what: str, least: int = 0, most: int | None = None) -> int:
    """Return `value`, checked to be a whole number.

    >>> number(2.0, "steps")
    Traceback (most recent call last):
    pushcen.errors.ProtocolError: steps = 2.0: must be a whole number, 0 or more
    """
    if type(value) is not int or value < least or (most is not None and value > most):
        upto = f"from {least} to {most}" if most is not None else f"{least} or more"
        raise ProtocolError(f"{what} = {value!r:.80}: must be a whole number, {upto}")
    return value


def identity(value: Any, _what: str) -> PeerId:
    """Return `value`, checked to be an identity."""
    return check_id(value)


def link(value: Any, what: str) -> str:
    """Return `value`, checked to be the name of a link: a sender, and perhaps a part."""
    if not isinstance(value, str) or "/" not in value:
        raise ProtocolError(f"{what} = {value!r:.80}: must be a link, sender or sender#part")
    sender = check_id(sender_of(value))
    part = value[len(sender) + 1 :]
    if value != sender and (value[len(sender)] != "#" or not part.isdigit() or str(int(part)) != part or part == "0"):
        raise ProtocolError(f"{what} = {value!r:.80}: must be a link, sender or sender#part")
    return value


def text(value: Any, what: str) -> str:
    """Return `value`, checked to be text."""
    if not isinstance(value, str) or not value:
        raise ProtocolError(f"{what} = {value!r:.80}: must be text")
    return value


def sequence(value: Any, what: str, size: int | None = None) -> list[Any]:
    """Return `value`, checked to be a list, of `size` if that is given."""
    if not isinstance(value, list | tuple) or (size is not None and len(value) != size):
        raise ProtocolError(f"{what} = {value!r:.80}: must be a list{f' of {size}' if size is not None else ''}")
    return list(value)


def mapping(value: Any, what: str, key: Check, entry: Check = number) -> dict[Any, Any]:
    """Return `value`, checked to be a dict with such keys and such values."""
    if not isinstance(value, dict):
        raise ProtocolError(f"{what} = {value!r:.80}: must be a dict")
    return {key(name, what): entry(item, f"{what}[{name!r:.80}]") for name, item in value.items()}


def top(value: Any, what: str) -> tuple[int, int]:
    """Return `value`, checked to be a total and a sequence."""
    total, newest = sequence(value, what, 2)
    return number(total, f"{what} total"), number(newest, f"{what} sequence", 0, LIMIT)


def packed_top(value: Any, what: str) -> int:
    """Return `value`, checked to be a total and a sequence in one number, as mailboxes have them."""
    number(number(value, what) & LOW, f"{what} sequence", 0, LIMIT)
    return int(value)


def pair(value: Any, what: str) -> tuple[int, int]:
    """Return `value`, checked to be two whole numbers, which may be negative."""
    left, lost = sequence(value, what, 2)
    if type(left) is not int or type(lost) is not int:
        raise ProtocolError(f"{what} = {value!r:.80}: must be two whole numbers")
    return left, lost


def envelope(value: Any, what: str) -> Envelope:
    """Return the envelope that `value` has the fields of, checked but for its payload."""
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
    """Return the envelopes that `value` lists, checked, by link."""
    found = [envelope(fields, f"{what}[{at}]") for at, fields in enumerate(sequence(value, what))]
    return {one.link: one for one in found}


@contextmanager
def as_protocol_error() -> Iterator[None]:
    """Turn any error about what was saved into a `ProtocolError`."""
    try:
        yield
    except ProtocolError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ProtocolError(f"not a saved peer: {error!r:.200}") from error


def check_receivers(receivers: Sequence[Contact], parts: Sequence[int], me: PeerId, mass: bool) -> None:
    """Refuse receivers that are no contacts, are listed twice or are `me`, and parts that do not fit them.

    `mass` says whether pushes carry mass.
    """
    if not isinstance(receivers, _LISTS) or not isinstance(parts, _LISTS):
        raise ProtocolError(f"receivers {receivers!r:.80}, parts {parts!r:.80}: must be a list each")
    peers = {contact[0] for contact in receivers if contact.__class__ is Contact}
    if len(peers) == len(receivers) and me not in peers and not parts:
        return
    for contact in receivers:
        if contact.__class__ is not Contact:
            raise ProtocolError(f"receiver {contact!r:.80}: must be a Contact")
    if me in peers:
        raise ProtocolError(f"receivers {sorted(peers)}: {me} cannot push to itself")
    if parts and (mass or len(parts) != len(receivers)):
        raise ProtocolError(f"parts = {parts!r}: one for each receiver, and none where mass moves")
    for part in parts:
        number(part, "parts", 0, PARTS)
    if not parts or len(set(zip(receivers, parts, strict=True))) < len(receivers):
        raise ProtocolError(f"receivers {[contact.peer for contact in receivers]}: each may be listed once")


def malformed(envelope: Envelope, me: PeerId) -> ProtocolError:
    """Return the error that says what is wrong with an envelope that came to `me`."""
    what = f"envelope {envelope.sequence!r} from {envelope.sender} to {envelope.receiver}"
    if envelope.receiver != me:
        return ProtocolError(f"{what}: not for {me}")
    if envelope.sender.__class__ is not str:
        return ProtocolError(f"{what}: the sender must be text")
    if envelope.sender == me:
        return ProtocolError(f"{what}: a peer cannot push to itself")
    return ProtocolError(
        f"{what}, part {envelope.part!r}, total {envelope.total!r}: must be whole numbers, 0 or more,"
        f" the sequence from 1 to {LIMIT}; only whole models carry mass"
    )
