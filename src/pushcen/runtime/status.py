"""What a peer says of itself while it runs, in `status.json` of its state folder, and how that is read.

Whoever reads it trusts nothing in it: what is not of its kind is as if it were not there, texts are short and
printable, and the file is bounded.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from pushcen.errors import LedgerError
from pushcen.protocol import UNIT
from pushcen.runtime.logs import printable
from pushcen.runtime.state_folder import LEDGER, read_state

NAME = "status.json"
EVERY = 5.0
"""Seconds after which a running peer says it again."""
_LONGEST = 1 << 20  # bytes of the file
_LEDGER = 64 << 20  # bytes of a ledger that is read
_HUGE = 1e18  # which no number is above
_MOST = 256  # neighbours, or reasons
T = TypeVar("T")


@dataclass(frozen=True)
class NeighbourStatus:
    """One of those whom a peer knows. Times are those of the wall clock; 0 is never."""

    name: str = ""
    address: str = ""
    state: str = ""
    """answers, silent, refuses, or known: not asked yet, as there are many."""
    why: str = ""
    """What it said, or what went wrong, if it does not answer."""
    called: float = 0.0
    pushed: float = 0.0
    """When its last push was news here."""
    took: float = 0.0
    """When it last took a push of this peer's as news."""
    differs: str = ""
    """What it does in another way, of what may differ: learning rate, versions."""
    in_doubt: bool = False
    """Whether mass is on the link to it of which nobody knows whether it has it."""
    awaited: bool = False
    """Whether a peer that leaves waits for its word that it has credited what it was given."""


@dataclass(frozen=True)
class Status:
    """All that a peer says of itself. Times are those of the wall clock; 0 is never."""

    time: float = 0.0
    started: float = 0.0
    ended: str = ""
    """Empty while it runs; then stopped, left, killed (for who looks), or the error that it ended with."""
    version: str = ""
    network: str = ""
    peer: str = ""
    boot: int = 0
    address: str = ""
    phase: str = ""
    """starting, training, done, leaving."""
    leaving: float = 0.0
    """When it began to leave."""
    method: str = ""
    events: int = 0
    seconds: float = 0.0
    """How long the last compute event took."""
    trained: float = 0.0
    merged: float = 0.0
    received: float = 0.0
    """When a push was last news here."""
    failed: float = 0.0
    failure: str = ""
    exchanges: bool = True
    """Whether its method sends and receives anything."""
    moves_mass: bool = True
    held: float = 0.0
    waiting: float = 0.0
    models: int = 0
    """How many wait in the mailbox."""
    certificate_end: float = 0.0
    certificate_wrong: str = ""
    """What is wrong with the new certificate that was put into its folder."""
    revoked: bool = False
    waits_for: str = ""
    """What the disk says, while a write waits for it."""
    bytes_in: int = 0
    bytes_out: int = 0
    quiet_after: float = 600.0
    join: list[str] = field(default_factory=list)
    silent: dict[str, str] = field(default_factory=dict)
    """Addresses to start from that do not answer, and why."""
    refusals: dict[str, int] = field(default_factory=dict)
    neighbours: list[NeighbourStatus] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Write it into a state folder: whole, but not synced, for the next one is soon there."""
        draft = folder / (NAME + ".new")
        draft.write_text(json.dumps(asdict(self)) + "\n")
        draft.replace(folder / NAME)


def read_status(folder: Path) -> Status:
    """Return what the peer of a state folder last said; of one that never did, what its ledger says."""
    if said := _said(folder / NAME):
        return status_of(said)
    path = folder / LEDGER
    if path.is_file() and path.stat().st_size > _LEDGER:
        raise LedgerError(f"{path}: has {path.stat().st_size >> 20} MB, {_LEDGER >> 20} at most; is it a ledger?")
    try:
        return _of_ledger(read_state(folder))
    except (TypeError, AttributeError, RecursionError) as error:
        raise LedgerError(f"{path}: is damaged: {error!r:.100}") from error


def _said(path: Path) -> dict[str, Any]:
    """Read a status file; nothing, if there is none or it is none."""
    if not path.is_file():
        return {}
    try:
        with path.open("rb") as file:
            data = file.read(_LONGEST + 1)
        found = json.loads(data) if len(data) <= _LONGEST else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def status_of(said: Mapping[str, Any]) -> Status:
    """Return a status out of what somebody says."""
    listed = said.get("neighbours")
    neighbours = [
        NeighbourStatus(**_plain(NeighbourStatus, one))
        for one in (listed[:_MOST] if isinstance(listed, list) else [])
        if isinstance(one, dict)
    ]
    join = said.get("join")
    return Status(
        **_plain(Status, said),
        neighbours=neighbours,
        join=[printable(one) for one in join[:_MOST]] if isinstance(join, list) else [],
        silent={printable(key): printable(value) for key, value in _table(said, "silent")},
        refusals={printable(key): value for key, value in _table(said, "refusals") if _is(value, 0)},
    )


def _plain(kind: type, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plain fields of a dataclass that have values of their kind."""
    found = {}
    for one in fields(kind):
        value = said.get(one.name)
        if _is(value, one.default):
            found[one.name] = printable(value) if isinstance(value, str) else value
    return found


def _is(value: Any, default: Any) -> bool:
    """Return whether a value is of a default's kind; numbers that are not finite, or below 0, are of none."""
    if isinstance(default, bool | str):
        return type(value) is type(default)
    if isinstance(default, int):
        return type(value) is int and 0 <= value < 1 << 63
    return isinstance(default, float) and type(value) in (int, float) and 0 <= value <= _HUGE


def _table(said: Mapping[str, Any], name: str) -> list[tuple[str, Any]]:
    found = said.get(name)
    return list(found.items())[:_MOST] if isinstance(found, dict) else []


def _of_ledger(ledger: Mapping[str, Any]) -> Status:
    """Make a status of a peer that has not said one, as of an earlier version."""
    peer, learner, about = (
        found if isinstance(found := ledger.get(key), dict) else {} for key in ("peer", "learner", "about")
    )
    held = peer.get("held")
    said = {
        "peer": peer.get("peer"),
        "boot": peer.get("boot"),
        "events": learner.get("events"),
        "method": about.get("method"),
        "held": held / UNIT if type(held) is int and 0 <= held < UNIT << 40 else 0.0,
    }
    return status_of(said)
