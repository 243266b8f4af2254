"""Push-sum that loses and makes no mass, whatever the network does: pure Python, with no torch, no clock and no I/O.

Here live envelopes, mailboxes, the accounts of links, the state machine of one client (`Peer`), the rules that methods
are composed of, the choice of neighbours, and the audit. Models, training and their payloads do not: to this package a
payload is an opaque handle. Time, sockets and durable storage belong to whoever drives a `Peer`.
"""

from pushcen.protocol.audit import Audit, Imbalance, Violation, audit
from pushcen.protocol.exchange import ANSWER, Ask, AtOnce, answer_to
from pushcen.protocol.mailbox import Event, Receipt
from pushcen.protocol.messages import UNIT, Answer, Contact, Envelope, Farewell, PeerId, epoch_of, name_of, peer_id
from pushcen.protocol.neighbours import BoundedView, FixedGraph, NeighbourChoice, Online, RandomNeighbours
from pushcen.protocol.peer import Peer
from pushcen.protocol.policies import ByBandit, ByPriority, NeighbourPolicy
from pushcen.protocol.rules import Buffer, Fragments, KeepLatest, Nobody, NoInbox, Rounds, Rules, Whole
from pushcen.protocol.weights import ByMass, Equal, EvenSplit, Fixed
from pushcen.protocol.wire import from_bytes, to_bytes

__all__ = [
    "ANSWER",
    "UNIT",
    "Answer",
    "Ask",
    "AtOnce",
    "Audit",
    "BoundedView",
    "Buffer",
    "ByBandit",
    "ByMass",
    "ByPriority",
    "Contact",
    "Envelope",
    "Equal",
    "EvenSplit",
    "Event",
    "Farewell",
    "Fixed",
    "FixedGraph",
    "Fragments",
    "Imbalance",
    "KeepLatest",
    "NeighbourChoice",
    "NeighbourPolicy",
    "NoInbox",
    "Nobody",
    "Online",
    "Peer",
    "PeerId",
    "RandomNeighbours",
    "Receipt",
    "Rounds",
    "Rules",
    "Violation",
    "Whole",
    "answer_to",
    "audit",
    "epoch_of",
    "from_bytes",
    "name_of",
    "peer_id",
    "to_bytes",
]
