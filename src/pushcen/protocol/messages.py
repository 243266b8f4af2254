"""What passes between peers: identities, envelopes, answers, farewells. Plain facts, with no behaviour."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, NewType, Self

from pushcen.errors import ProtocolError

UNIT = 2**40
"""The mass a founder starts with, in quanta."""

LIMIT = 2**63 - 1
"""The largest sequence and epoch there can be."""

Payload = Any
"""An opaque handle. The protocol passes it on and never looks inside."""


PeerId = NewType("PeerId", str)
"""A peer in one epoch of its life, as text: `name/epoch`. All that is counted is counted between two of these.

A peer that loses its state comes back under the same name in another epoch, and starts with no mass.
"""


def peer_id(name: str, epoch: int) -> PeerId:
    """Make the identity of a peer in one epoch. Of two epochs of a peer, the later has the larger number.

    >>> peer_id("ward-3", 1)
    'ward-3/1'
    """
    if type(epoch) is not int or not 0 <= epoch <= LIMIT:
        raise ProtocolError(f"epoch = {epoch!r}: must be a whole number from 0 to {LIMIT}")
    if not isinstance(name, str):
        raise ProtocolError(f"name = {name!r}: must be text")
    return check_id(f"{name}/{epoch}")


def check_id(text: str) -> PeerId:
    """Return `text`, checked to be an identity.

    >>> check_id("ward-3")
    Traceback (most recent call last):
    pushcen.errors.ProtocolError: peer 'ward-3': must be name/epoch, 255 bytes at most, epoch 0 to 9223372036854775807
    """
    if not isinstance(text, str):
        raise ProtocolError(f"peer {text!r:.80}: must be text, name/epoch")
    return _checked_id(text)


@lru_cache(maxsize=1 << 15)
def _checked_id(text: str) -> PeerId:
    name, _, epoch = text.rpartition("/")
    plain = epoch.isascii() and epoch.isdigit() and len(epoch) <= 19 and str(int(epoch)) == epoch
    if not name or not plain or int(epoch) > LIMIT or len(text.encode(errors="replace")) > 255:
        raise ProtocolError(f"peer {text!r:.300}: must be name/epoch, 255 bytes at most, epoch 0 to {LIMIT}")
    return PeerId(text)


def epoch_of(peer: PeerId) -> int:
    """Return the epoch of an identity.

    >>> epoch_of(peer_id("ward-3", 1))
    1
    """
    return int(peer.rpartition("/")[2])


def name_of(peer: PeerId) -> str:
    """Return the name of an identity.

    >>> name_of(peer_id("ward-3", 1))
    'ward-3'
    """
    return peer.rpartition("/")[0]


def sender_of(link: str) -> PeerId:
    """Return the sender of a link.

    >>> sender_of("ward#3/1"), sender_of("ward#3/1#2")
    ('ward#3/1', 'ward#3/1')
    """
    name, _, rest = link.rpartition("/")
    return PeerId(f"{name}/{rest.partition('#')[0]}")


class Envelope(NamedTuple):
    """One push: who, to whom, which part of the model, and the running total of mass on this link.

    `total` is all that was ever sent on the link, this envelope included, so whatever was lost before it is in it.
    `part` is 0 for a whole model; methods that send fragments number them from 1, each with a sequence of its own.
    """

    sender: PeerId
    receiver: PeerId
    part: int
    sequence: int
    total: int
    payload: Payload

    @property
    def link(self) -> str:
        """What the receiver's account goes by: the sender, and the part if there are parts."""
        return f"{self.sender}#{self.part}" if self.part else self.sender


class _Contact(NamedTuple):
    peer: PeerId
    boot: int


class Contact(_Contact):
    """A peer as its hello shows it: who it is now, and how often it has started (its *boot*).

    It is checked when it is made, so that pushes need not check it again.

    >>> Contact(peer_id("ward-3", 1), 0)
    Traceback (most recent call last):
    pushcen.errors.ProtocolError: boot = 0 of ward-3/1: must be a whole number, 1 or more
    """

    __slots__ = ()

    def __new__(cls, peer: PeerId, boot: int) -> Self:
        """Make a contact of what may have come from anywhere."""
        check_id(peer)
        if type(boot) is not int or boot < 1:
            raise ProtocolError(f"boot = {boot!r:.80} of {peer}: must be a whole number, 1 or more")
        return super().__new__(cls, peer, boot)


class Answer(NamedTuple):
    """What a receiver tells a sender about their link: with a hello, in answer to a push, or passed on by gossip.

    `credited` is the total it has committed, `accepted` the total it has accepted up to now, in this boot.
    """

    peer: PeerId
    boot: int
    credited: int
    accepted: int


class Farewell(NamedTuple):
    """The last word of a peer that leaves: what it has credited from each sender. Not listed means nothing."""

    peer: PeerId
    credited: Mapping[PeerId, int]
