"""All of a peer that must survive a crash: what it holds, sent and credited. Saved as plain data, fit for JSON."""

from collections.abc import Container
from typing import Any

from pushcen.errors import ProtocolError
from pushcen.protocol.mailbox import LOW, SHIFT, Tops
from pushcen.protocol.messages import PeerId

VERSION = 1
STATUSES = ("open", "leaving", "forgotten")
NONE: dict[Any, Any] = {}  # shared by all peers: what is rarely anything is an own dict from its first entry on
NOBODY: set[PeerId] = set()  # shared likewise


class Ledger:
    """The durable part of a peer. One `save()` in one transaction is one commit."""

    __slots__ = (
        "boot",
        "boots",
        "closed",
        "confirmed",
        "credited",
        "destroyed",
        "events",
        "expects",
        "forgotten",
        "founded",
        "held",
        "me",
        "most",
        "past",
        "sent",
        "sequence",
        "status",
        "unsettled",
    )

    def __init__(self, me: PeerId, founded: int) -> None:
        self.me = me
        self.boot = 1  # how often this peer has started
        self.founded = founded
        self.held = founded  # s_i in the paper, in quanta
        self.sequence = 0  # of the newest envelope
        self.events = 0  # compute events finished
        self.status = "open"
        self.destroyed: dict[str, int] = NONE  # by rule
        self.forgotten: dict[PeerId, int] = NONE  # who was written off, and what each was founded with
        self.past: dict[str, int] = NONE  # by name, where a later epoch was met: earlier ones than this are over
        self.sent: dict[PeerId, int] = {}  # by receiver: the running total
        self.unsettled: dict[PeerId, tuple[int, int, bool]] = {}  # see `Sender`
        self.boots: dict[PeerId, int] = NONE  # of receivers known to have started more than once
        self.closed: set[PeerId] = NOBODY  # receivers that take nothing any more
        self.confirmed: dict[PeerId, int] = NONE  # with `most`, and while leaving: what receivers have committed
        self.credited: Tops = {}  # by link: what is credited
        self.expects: Container[PeerId] = ()  # receivers whose answers are under way; the driver's, and never saved
        self.most: int | None = None  # all mass that was ever founded, if that bounds links; the driver's, never saved

    def save(self) -> dict[str, Any]:
        """Give all of it as plain data. `credited` has a link's total and sequence."""
        return {
            "version": VERSION,
            "peer": self.me,
            "boot": self.boot,
            "founded": self.founded,
            "held": self.held,
            "sequence": self.sequence,
            "events": self.events,
            "status": self.status,
            "destroyed": dict(self.destroyed),
            "forgotten": dict(self.forgotten),
            "past": dict(self.past),
            "sent": dict(self.sent),
            "unsettled": list(self.unsettled),
            "boots": dict(self.boots),
            "closed": sorted(self.closed),
            "confirmed": dict(self.confirmed),
            "credited": {link: [top >> SHIFT, top & LOW] for link, top in self.credited.items()},
        }

    def _load(self, state: dict[str, Any]) -> None:
        """Take over what `save` gave, but for the identity and what was founded."""
        if state["status"] not in STATUSES:
            raise ProtocolError(f"status = {state['status']!r}: must be one of {', '.join(STATUSES)}")
        self.status = state["status"]
        for name in ("boot", "held", "sequence", "events"):
            setattr(self, name, count(state, name))
        for name in ("destroyed", "forgotten", "sent", "boots", "confirmed"):
            setattr(self, name, {key: count(state[name], key) for key in state[name]})
        self.past = {name: count(state["past"], name) for name in state.get("past", ())}
        self.unsettled = {who: (0, 0, True) for who in state["unsettled"] if count(state["sent"], who)}
        self.closed = {*state["closed"], *self.forgotten}
        for link, (total, sequence) in state["credited"].items():  # into the dict that the mailbox reads
            self.credited[link] = count({link: total}, link) << SHIFT | count({link: sequence}, link)


def count(state: dict[str, Any], name: str) -> int:
    """Read a whole number, 0 or more."""
    value = state[name]
    if type(value) is not int or value < 0:
        raise ProtocolError(f"{name} = {value!r}: must be a whole number, 0 or more")
    return value
