"""What lasts and is passed on for ever: farewells, forgotten peers, the list of revoked certificates."""

import hashlib
from collections.abc import Iterable

from pushcen.errors import CertificateError
from pushcen.protocol import Farewell, PeerId, name_of
from pushcen.protocol.messages import check_id
from pushcen.runtime.identity import Identity
from pushcen.runtime.trust import Fields
from pushcen.runtime.wire import Signed

MOST = 10_000
"""Records that are kept; more would be no network of ours."""


class Records:
    """Signed records by digest; of each subject one is enough, and the newest list of revoked certificates."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._all: dict[int, tuple[str, Signed]] = {}

    def add(self, record: Signed) -> Farewell | tuple[PeerId, int] | None:
        """Check a record and keep it; return what it says if that is news to the ledger: who left, or was forgotten.

        Refuses with a `CertificateError` what is not signed by who may say it.
        """
        key = digest(record)
        if key in self._all:
            return None
        author, fields = self._identity.verify(record, expired=True)
        kind = fields.get("kind")
        if kind == "revoked" and author is None:
            if self._identity.revoke(record) or fields["number"] == self._identity.revision:
                self._drop("revoked")
                self._keep(key, "revoked", record)
            return None
        if kind == "farewell" and author is not None:
            farewell = _farewell(fields)
            if name_of(farewell.peer) != author:
                raise CertificateError(f"a farewell of {farewell.peer} that {author} signed")
            if sum(subject.startswith(f"farewell {author}/") for subject, _ in self._all.values()) >= MOST // 100:
                raise CertificateError(f"more farewells of {author} than anybody says")
            return farewell if self._keep(key, f"farewell {farewell.peer}", record) else None
        if kind == "forget" and author is None:
            peer = check_id(fields["peer"])
            return (peer, self._identity.network.founded(peer)) if self._keep(key, f"forget {peer}", record) else None
        raise CertificateError(f"a record of kind {kind!r:.40}, which {author or 'the authority'} may not make")

    def have(self) -> list[int]:
        """Give the digests of all records."""
        return list(self._all)

    def missing(self, have: Iterable[int]) -> list[Signed]:
        """Give the records that somebody with these does not have, a few at a time."""
        theirs = set(have)
        return [record for key, (_, record) in self._all.items() if key not in theirs][:50]

    def save(self) -> list[str]:
        """Give all of them as plain data."""
        return [record.SerializeToString().hex() for _, record in self._all.values()]

    def _keep(self, key: int, subject: str, record: Signed) -> bool:
        if len(self._all) >= MOST or any(subject == other for other, _ in self._all.values()):
            return False
        self._all[key] = (subject, record)
        return True

    def _drop(self, subject: str) -> None:
        self._all = {key: entry for key, entry in self._all.items() if entry[0] != subject}


def digest(record: Signed) -> int:
    """Give 64 bits that name what a record says."""
    return int.from_bytes(hashlib.sha256(record.body).digest()[:8], "little")


def farewell_fields(farewell: Farewell) -> Fields:
    """Write a farewell as a statement to be signed."""
    return {"kind": "farewell", "peer": farewell.peer, "credited": dict(farewell.credited)}


def _farewell(fields: Fields) -> Farewell:
    try:
        credited = {check_id(peer): total for peer, total in fields["credited"].items()}
        if not all(type(total) is int and total >= 0 for total in credited.values()):
            raise ValueError("totals must be whole numbers, 0 or more")
        return Farewell(check_id(fields["peer"]), credited)
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise CertificateError(f"a farewell that is not well-formed: {error}") from error
