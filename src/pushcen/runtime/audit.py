"""The audit over state folders, of peers that are stopped or running."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pushcen.errors import LedgerError
from pushcen.protocol import Audit, Imbalance, PeerId, Violation, audit
from pushcen.runtime.generations import generation_of
from pushcen.runtime.store import read_state

_TRIES = 5


def behind(folders: Sequence[Path]) -> list[PeerId]:
    """List the peers that have not entered the newest generation among these yet: their books are not audited."""
    peers = [state["peer"]["peer"] for folder in folders if "peer" in (state := read_state(folder))]
    newest = max(map(generation_of, peers), default=0)
    return [peer for peer in peers if generation_of(peer) < newest]


def audit_folders(folders: Sequence[Path]) -> tuple[Audit, bool]:
    """Audit the ledgers in some state folders, as of the newest generation; say whether they all stood still meanwhile.

    Two readings of all ledgers that are equal show one moment. Where peers keep running, what each has credited is
    taken from an earlier reading than what others have sent: violations are real, sums are only near.
    """
    before = _read(folders)
    for _ in range(_TRIES):
        after = _read(folders)
        if before == after:
            return audit(after), True
        credited = [{**new, "credited": old["credited"]} for old, new in zip(before, after, strict=True)]
        before = after
        time.sleep(0.05)
    found = audit(after)
    links = [violation for violation in audit(credited).violations if isinstance(violation, Violation)]
    books = [violation for violation in found.violations if isinstance(violation, Imbalance)]
    return replace(found, violations=[*links, *books]), False


def _read(folders: Sequence[Path]) -> list[dict[str, Any]]:
    states = []
    for folder in folders:
        state = read_state(folder)
        if "peer" not in state:
            raise LedgerError(f"{folder}: its peer has not begun yet")
        states += [*state.get("past", []), state["peer"]]
    newest = max((generation_of(state["peer"]) for state in states), default=0)
    return [state for state in states if generation_of(state["peer"]) == newest]
