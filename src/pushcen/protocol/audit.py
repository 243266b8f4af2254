"""The audit: where all mass is, and which links break the one law they must keep, 0 <= credited <= sent."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pushcen.protocol.messages import PeerId, epoch_of, name_of, sender_of


class Violation(NamedTuple):
    """A link on which more was credited than sent: mass was made."""

    sender: PeerId
    receiver: PeerId
    sent: int
    credited: int

    def __str__(self) -> str:
        return f"{self.receiver} has credited {self.credited} quanta from {self.sender}, which sent {self.sent}"


class Imbalance(NamedTuple):
    """A peer whose own books do not add up: held + sent - credited + destroyed is not what it was founded with."""

    peer: PeerId
    founded: int
    found: int

    def __str__(self) -> str:
        return f"{self.peer} was founded with {self.founded} quanta, and its books add up to {self.found}"


@dataclass(frozen=True)
class Audit:
    """Where all mass is, in quanta.

    `on_links` was sent and not credited, between peers whose books are here: under way, in a mailbox, or stranded.
    `missing` is what went to peers with neither books nor a record that they were forgotten, less what came from
    them; by name, where links with its earlier epochs were dropped. One peer's books always add up by themselves, so
    the sum proves little: it is `violations` that shows mass made, on a link or in a peer's own books.
    """

    founded: int
    held: int
    on_links: int
    written_off: int
    destroyed: dict[str, int] = field(default_factory=dict)
    missing: dict[PeerId, int] = field(default_factory=dict)
    violations: list[Violation | Imbalance] = field(default_factory=list)

    @property
    def balanced(self) -> bool:
        """Whether everything founded is somewhere."""
        found = self.held + self.on_links + self.written_off + sum(self.destroyed.values()) + sum(self.missing.values())
        return self.founded == found

    def figures(self, waiting: int = 0) -> dict[str, Any]:
        """Return what metrics and summaries say of mass, in shares of what was founded; `waiting` is in mailboxes.

        >>> Audit(founded=8, held=6, on_links=2, written_off=0).figures(waiting=1)["mass_under_way"]
        0.125
        """
        founded = self.founded or 1
        return {
            "mass_exact": self.balanced and not self.violations and not self.missing,
            "mass_held": self.held / founded,
            "mass_waiting": waiting / founded,
            "mass_under_way": (self.on_links - waiting) / founded,
            "mass_destroyed": (sum(self.destroyed.values()) + self.written_off) / founded,
        }


def audit(states: Iterable[dict[str, Any]]) -> Audit:
    """Check what peers saved, those that left included, against each other.

    Of peers that run, read what each has credited before what others have sent.

    >>> from pushcen.protocol import Peer
    >>> a, b = Peer.found("a"), Peer.found("b")
    >>> _ = a.begin(), a.finish([b.contact], payload=None)
    >>> report = audit([a.save(), b.save()])
    >>> report.founded == report.held + report.on_links, report.violations
    (True, [])
    """
    books = {state["peer"]: state for state in states}
    forgotten: dict[PeerId, int] = {}
    for state in books.values():
        forgotten.update(state["forgotten"])
    living = {peer: state for peer, state in books.items() if peer not in forgotten}
    on_links, written_off = 0, sum(forgotten.values())
    destroyed: dict[str, int] = {}
    missing: dict[PeerId, int] = {}
    violations: list[Violation | Imbalance] = []
    for peer, state in books.items():
        own = state["held"] + sum(state["sent"].values()) + sum(state["destroyed"].values())
        own -= sum(total for total, _ in state["credited"].values())
        own += sum(map(sum, state.get("over", {}).values()))
        if own != state["founded"]:
            violations.append(Imbalance(peer, state["founded"], own))
    for peer, state in living.items():
        flows = [(other, total) for other, total in state["sent"].items()]
        flows += [(sender_of(link), -total) for link, (total, _) in state["credited"].items()]
        for other, mass in flows:
            if other in living:
                on_links += mass
            elif other in forgotten:
                written_off += mass
            elif mass:
                missing[other] = missing.get(other, 0) + mass
        for name, (left, lost) in state.get("over", {}).items():
            written_off += lost
            if any(_is_dropped(state, other) and name_of(other) == name for other in living):
                on_links += left
            elif any(_is_dropped(state, other) and name_of(other) == name for other in forgotten):
                written_off += left
            elif left:
                missing[PeerId(name)] = missing.get(PeerId(name), 0) + left
        for rule, mass in state["destroyed"].items():
            destroyed[rule] = destroyed.get(rule, 0) + mass
        for link, (credited, _) in state["credited"].items():
            sender = sender_of(link)
            sent = living[sender]["sent"].get(peer, 0) if sender in living else credited
            if credited > sent and not (sender in living and _is_dropped(living[sender], peer)):
                violations.append(Violation(sender, peer, sent, credited))
    return Audit(
        founded=sum(state["founded"] for state in living.values()) + sum(forgotten.values()),
        held=sum(state["held"] for state in living.values()),
        on_links=on_links,
        written_off=written_off,
        destroyed=destroyed,
        missing=missing,
        violations=violations,
    )


def _is_dropped(state: dict[str, Any], peer: PeerId) -> bool:
    """Return whether a peer with this ledger has dropped its links with `peer`, so that they are in its sums."""
    return epoch_of(peer) < state.get("past", {}).get(name_of(peer), 0) and peer not in state["sent"]
