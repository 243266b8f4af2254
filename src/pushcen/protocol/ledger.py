"""All of a peer that must survive a crash: what it holds, sent and credited. Saved as plain data, fit for JSON."""

from collections.abc import Container
from typing import Any

from pushcen.errors import ProtocolError
from pushcen.protocol.mailbox import LOW, SHIFT, Tops
from pushcen.protocol.messages import LIMIT, PeerId, check_id
from pushcen.protocol.validation import STATUSES, VERSION, identity, link, mapping, number, pair, sequence, text, top

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
        "over",
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
        self.over: dict[str, tuple[int, int]] = NONE  # by name: sent - credited on dropped links, see `Epochs`
        self.sent: dict[PeerId, int] = {}  # by receiver: the running total
        self.unsettled: dict[PeerId, tuple[int, int, bool]] = {}  # see `Sender`
        self.boots: dict[PeerId, int] = NONE  # of receivers known to have started more than once
        self.closed: set[PeerId] = NOBODY  # receivers that take nothing any more
        self.confirmed: dict[PeerId, int] = NONE  # with `most`, and while leaving: what receivers have committed
        self.credited: Tops = {}  # by link: what is credited
        self.expects: Container[PeerId] = ()  # receivers whose answers are under way; the driver's, and never saved
        self.most: int | None = None  # all mass that was ever founded, if that bounds links; the driver's, never saved

    def save(self) -> dict[str, Any]:
        """Return all of it as plain data. `credited` has a link's total and sequence."""
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
            "over": {name: list(sums) for name, sums in self.over.items()},
            "sent": dict(self.sent),
            "unsettled": list(self.unsettled),
            "boots": dict(self.boots),
            "closed": sorted(self.closed),
            "confirmed": dict(self.confirmed),
            "credited": {link: [top >> SHIFT, top & LOW] for link, top in self.credited.items()},
        }

    def _load(self, state: dict[str, Any]) -> None:
        """Take over what `save` returned, but for the identity and what was founded; all of it is checked first."""
        if state["status"] not in STATUSES:
            raise ProtocolError(f"status = {state['status']!r:.80}: must be one of {', '.join(STATUSES)}")
        boot, newest = number(state["boot"], "boot", 1), number(state["sequence"], "sequence", 0, LIMIT)
        held, events = number(state["held"], "held"), number(state["events"], "events")
        destroyed = mapping(state["destroyed"], "destroyed", text)
        forgotten, sent, confirmed = (
            mapping(state[name], name, identity) for name in ("forgotten", "sent", "confirmed")
        )
        boots = mapping(state["boots"], "boots", identity)
        closed = {check_id(peer) for peer in sequence(state["closed"], "closed")}
        past = mapping(state.get("past", {}), "past", text)
        over = mapping(state.get("over", {}), "over", text, pair)
        unsettled = sequence(state["unsettled"], "unsettled")
        credited = mapping(state["credited"], "credited", link, top)
        for peer in [*unsettled, *(other for other in sent if other == self.me)]:
            if not isinstance(peer, str) or peer not in sent or peer == self.me:
                raise ProtocolError(f"unsettled or sent has {peer!r:.80}: must be others, to whom something was sent")
        self.status, self.boot, self.sequence, self.held, self.events = state["status"], boot, newest, held, events
        self.destroyed, self.forgotten, self.sent, self.confirmed = destroyed, forgotten, sent, confirmed
        self.boots, self.closed, self.past = boots, closed | forgotten.keys(), past
        self.over = over
        self.unsettled = dict.fromkeys(unsettled, (0, 0, True))
        for name, (total, last) in credited.items():  # into the dict that the mailbox reads
            self.credited[name] = total << SHIFT | last
