"""Push-sum that loses and makes no mass, whatever the network does: pure Python, with no torch, no clock and no I/O.

Here live envelopes, mailboxes, the accounts of links, the state machine of one client (`Peer`), the protocol rules of
each method, the choice of neighbours, and the audit. Models, training and their payloads do not: to this package a
payload is an opaque handle. Time, sockets and durable storage belong to whoever drives a `Peer`.
"""

from pushcen.protocol.audit import Audit, Imbalance, Violation, audit
from pushcen.protocol.mailbox import Receipt
from pushcen.protocol.messages import UNIT, Answer, Contact, Envelope, Farewell, PeerId, epoch_of, name_of, peer_id
from pushcen.protocol.neighbours import BoundedView, FixedGraph, NeighbourChoice, Online, RandomNeighbours
from pushcen.protocol.peer import Event, Peer
from pushcen.protocol.rules import (
    Buffer,
    Rules,
    async_dfedavg,
    divshare,
    independent,
    pushcen,
    swift,
    swift_random,
)
from pushcen.protocol.wire import from_bytes, to_bytes

__all__ = [
    "UNIT",
    "Answer",
    "Audit",
    "BoundedView",
    "Buffer",
    "Contact",
    "Envelope",
    "Event",
    "Farewell",
    "FixedGraph",
    "Imbalance",
    "NeighbourChoice",
    "Online",
    "Peer",
    "PeerId",
    "RandomNeighbours",
    "Receipt",
    "Rules",
    "Violation",
    "async_dfedavg",
    "audit",
    "divshare",
    "epoch_of",
    "from_bytes",
    "independent",
    "name_of",
    "peer_id",
    "pushcen",
    "swift",
    "swift_random",
    "to_bytes",
]
