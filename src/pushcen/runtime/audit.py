"""The audit over state folders, of peers stopped or running: where mass is, what cannot be, what is not seen."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pushcen.errors import LedgerError
from pushcen.protocol import UNIT, Audit, Imbalance, PeerId, Violation, audit, name_of
from pushcen.protocol.messages import peer_id, sender_of
from pushcen.runtime.network import Generation, generation_of
from pushcen.runtime.state_folder import Plain, read_state
from pushcen.runtime.wire import Signed

_TRIES = 5


@dataclass(frozen=True)
class Findings:
    """What an audit found. `wrong` says what cannot be, `unseen` what was not here to be seen, a sentence each."""

    mass: Audit
    still: bool
    """Whether all ledgers stood still meanwhile."""
    behind: list[PeerId]
    """Peers that have not entered the newest generation: what they hold counts no more."""
    wrong: list[str]
    unseen: list[str]

    @property
    def sound(self) -> bool:
        """Whether everything was seen, and adds up."""
        return not self.wrong and not self.unseen


def examine(folders: Sequence[Path]) -> Findings:
    """Audit the ledgers in some state folders, against each other and against who founded the network."""
    folders = list({folder.resolve(): folder for folder in folders}.values())
    ledgers = _ledgers(folders)
    found, still = audit_folders(folders)
    states = _newest(ledgers)
    generation = generation_of(states[0]["peer"])
    units, late = _founders(ledgers, generation), behind(folders)
    unseen = [f"{peer} has not entered generation {generation} yet" for peer in late]
    absent = [name for name, unit in (units or {}).items() if unit and not _is_here(name, generation, states)]
    if units is None:
        unseen.append("who the founders were: these ledgers are of an older version (start one of the peers again)")
    for name in absent:
        who = peer_id(name, Generation(generation, ()).first)
        unseen.append(f"{name} is a founder, and the ledger of {who} is not here (if it is lost: pushcen forget {who})")
    for who, mass in found.missing.items():
        unseen.append(f"{who} has {mass / UNIT:.9f} more than it gave, and its ledger is not here")
    wrong = [*map(str, found.violations), *_impossible(ledgers, states, units)]
    wrong += _overdrawn(states, found) if still else []
    if not found.balanced:
        wrong.append(f"{found.founded / UNIT:.9f} was founded, and that is not what all there is adds up to")
    outside = found.written_off + sum(found.missing.values()) + sum((units or {})[name] for name in absent)
    if units is not None and outside < 0:
        givers = "who is not here" if absent or found.missing else "who was forgotten"
        wrong.append(f"{givers} gave out {-outside / UNIT:.9f} more than there can ever have been")
    return Findings(found, still, late, wrong, unseen)


def behind(folders: Sequence[Path]) -> list[PeerId]:
    """List the peers that have not entered the newest generation among these yet: their books are not audited."""
    peers = [state["peer"]["peer"] for state in _ledgers(folders)]
    newest = max(map(generation_of, peers), default=0)
    return [peer for peer in peers if generation_of(peer) < newest]


def audit_folders(folders: Sequence[Path]) -> tuple[Audit, bool]:
    """Audit the ledgers in some state folders, as of the newest generation; return whether all stood still, too.

    Two readings of all ledgers that are equal show one moment. Where peers keep running, what each has credited is
    taken from an earlier reading than what others have sent: violations are real, sums are only near.
    """
    before = _newest(_ledgers(folders))
    for _ in range(_TRIES):
        after = _newest(_ledgers(folders))
        if before == after:
            return audit(after), True
        credited = [{**new, "credited": old["credited"]} for old, new in zip(before, after, strict=True)]
        before = after
        time.sleep(0.05)
    found = audit(after)
    links = [violation for violation in audit(credited).violations if isinstance(violation, Violation)]
    books = [violation for violation in found.violations if isinstance(violation, Imbalance)]
    return replace(found, violations=[*links, *books]), False


def _ledgers(folders: Sequence[Path]) -> list[Plain]:
    ledgers = []
    for folder in folders:
        ledger = read_state(folder)
        if "peer" not in ledger:
            raise LedgerError(f"{folder}: its peer has not begun yet")
        ledgers.append(ledger)
    return ledgers


def _newest(ledgers: Sequence[Plain]) -> list[Plain]:
    """Take the books of the newest generation out of ledgers, those of peers that left included."""
    states = [state for ledger in ledgers for state in (*ledger.get("past", []), ledger["peer"])]
    newest = max((generation_of(state["peer"]) for state in states), default=0)
    return [state for state in states if generation_of(state["peer"]) == newest]


def _founders(ledgers: Sequence[Plain], generation: int) -> Mapping[str, int] | None:
    """Find who founded a generation, and with how much mass each; None if no ledger says it."""
    for ledger in ledgers:
        units = ledger.get("founders")
        if not generation and units is not None:
            return dict(units)
        for text in ledger.get("records", []):
            fields = json.loads(Signed.FromString(bytes.fromhex(text)).body)
            if fields["kind"] == "refound" and fields["generation"] == generation:
                return dict.fromkeys(Generation.of(fields).founders, max((units or {}).values(), default=UNIT))
    return None


def _is_here(name: str, generation: int, states: Sequence[Plain]) -> bool:
    """Return whether a founder's first books are here, or written off."""
    who = peer_id(name, Generation(generation, ()).first)
    return any(who == state["peer"] or who in state["forgotten"] for state in states)


def _impossible(ledgers: Sequence[Plain], states: Sequence[Plain], units: Mapping[str, int] | None) -> Iterator[str]:
    """Yield a sentence on each thing that no honest ledger has."""
    if len({ledger.get("network") for ledger in ledgers}) > 1:
        yield "these are ledgers of different networks"
    peers = [state["peer"] for state in states]
    for peer in sorted({peer for peer in peers if peers.count(peer) > 1}):
        yield f"{peer} has more than one ledger here: one of them is a copy"
    for state in states:
        peer, founded = state["peer"], state["founded"]
        numbers = [state["held"], founded, *state["sent"].values(), *state["destroyed"].values()]
        if min(numbers + [total for total, _ in state["credited"].values()]) < 0:
            yield f"{peer} has a negative amount in its books"
        if units is None or not any(units.values()):
            continue
        first = peer == peer_id(name_of(peer), Generation(generation_of(peer), ()).first)
        expected = units.get(name_of(peer), 0) if first else 0
        if founded != expected:
            yield f"{peer} says it was founded with {founded / UNIT:.9f}, and the network gave it {expected / UNIT:.9f}"
    if units is None and not any(state["founded"] for state in states):
        yield "nobody here was founded with any mass"


def _overdrawn(states: Sequence[Plain], found: Audit) -> list[str]:
    """Return which two have credited more of each other than they sent, links that were dropped since included.

    Of those only sums by name are left, so names that are not all here, or were forgotten once, are not compared.
    """
    forgotten = {peer for state in states for peer in state["forgotten"]}
    living = {state["peer"] for state in states} - forgotten
    whole = {name_of(peer) for peer in living} - {name_of(peer) for peer in (*forgotten, *found.missing)}
    pairs: dict[tuple[str, str], int] = {}
    for state in states:
        flows = [(name_of(peer), mass) for peer, mass in state["sent"].items()]
        flows += [(name_of(sender_of(link)), -mass) for link, (mass, _) in state["credited"].items()]
        flows += [(name, left) for name, (left, _) in state.get("over", {}).items()]
        for name, mass in flows:
            pair = min(name, me := name_of(state["peer"])), max(name, me)
            pairs[pair] = pairs.get(pair, 0) + mass
    return [
        f"{one} and {other} have credited {-mass / UNIT:.9f} more of each other than they sent"
        for (one, other), mass in pairs.items()
        if mass < 0 and {one, other} <= whole
    ]
