"""What lasts and is passed on: farewells, forgotten peers, the list of revoked certificates, the newest refound."""

import hashlib
from collections.abc import Iterable, Iterator
from random import Random

from google.protobuf.message import DecodeError

from pushcen.errors import CertificateError
from pushcen.protocol import Farewell, PeerId, name_of
from pushcen.protocol.messages import check_id
from pushcen.runtime.network import Generation, generation_of
from pushcen.runtime.security.identity import Identity
from pushcen.runtime.security.trust import Fields
from pushcen.runtime.wire import Signed

MOST = 10_000
"""Records that are kept; more would be no network of ours."""
_LONGEST = 256 << 10  # bytes of a farewell, which is enough for 4,000 senders
_ROOM = 512 << 10  # bytes of records in one message

Said = Farewell | tuple[PeerId, int]
"""Who left; or who was forgotten, and what it was founded with."""


class Records:
    """Signed records by digest; of each subject one is enough, and the newest list of revoked certificates.

    A record that founds a new `generation` waits as the `next` one until this peer has entered it, which `enter`
    notes. With that, farewells and forgotten peers of earlier generations are dropped: their links count no more.
    """

    def __init__(self, identity: Identity) -> None:
        self.generation = Generation(0, identity.network.founders)
        self.next: Generation | None = None
        self._identity = identity
        self._all: dict[int, tuple[str, Signed, Farewell | PeerId | None]] = {}
        self._refounds: dict[int, Signed] = {}  # by generation, from this one on
        self._rng = Random(0)

    @property
    def newest(self) -> Generation:
        """The newest generation that is known of."""
        return self.next or self.generation

    @property
    def refound(self) -> Signed | None:
        """The record that founds the newest generation, if it is not the first."""
        return self._refounds.get(self.newest.number)

    def add(self, record: Signed) -> Said | Generation | None:
        """Check a record and keep it; return what it says if that is news: who left, was forgotten, or founds anew.

        Refuses with a `CertificateError` what is not signed by who may say it.
        """
        key = digest(record)
        if key in self._all or any(digest(known) == key for known in self._refounds.values()):
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
            sizes = [entry[1].ByteSize() for entry in self._all.values() if entry[0].startswith(f"farewell {author}/")]
            if len(sizes) >= MOST // 100 or record.ByteSize() > _LONGEST or sum(sizes) > 4 * _LONGEST:
                raise CertificateError(f"more or longer farewells of {author} than anybody says")
            return self._news(farewell) if self._keep(key, f"farewell {farewell.peer}", record, farewell) else None
        if kind == "forget" and author is None:
            peer = check_id(fields["peer"])
            return self._news(peer) if self._keep(key, f"forget {peer}", record, peer) else None
        if kind == "refound" and author is None:
            return self._found(record, Generation.of(fields))
        raise CertificateError(f"a record of kind {kind!r:.40}, which {author or 'the authority'} may not make")

    def said(self) -> Iterator[Said]:
        """Yield again what was said of peers of this generation."""
        for _, _, said in list(self._all.values()):
            if said is not None and (news := self._news(said)):
                yield news

    def have(self) -> list[int]:
        """Return the digests of all records."""
        return [*map(digest, self._refounds.values()), *self._all]

    def missing(self, have: Iterable[int]) -> list[Signed]:
        """Return records that somebody with these does not have, as many as fit into a message.

        The authority's come first, and farewells in any order: so nobody keeps a record back by signing many that the
        other side does not take.
        """
        theirs = set(have)
        found = [entry[1] for key, entry in self._all.items() if key not in theirs]
        self._rng.shuffle(found)
        found.sort(key=lambda record: bool(record.certificate))
        if self.refound and digest(self.refound) not in theirs:
            found.insert(0, self.refound)
        room = _ROOM - (found[0].ByteSize() if found else 0)
        fitting = found[:1]
        for record in found[1:50]:
            room -= record.ByteSize()
            if room < 0:
                break
            fitting.append(record)
        return fitting

    def save(self, entering: Generation | None = None) -> list[str]:
        """Return all of them as plain data, in this generation or the one that the same commit enters.

        What waits for this peer to enter it is not saved: record, epoch and mass are to be one commit.
        """
        refound = self._refounds.get((entering or self.generation).number)
        records = [entry[1] for entry in self._all.values()]
        return [record.SerializeToString().hex() for record in ([refound, *records] if refound else records)]

    def restore(self, saved: Iterable[str], entered: int) -> list[str]:
        """Take over what was saved by a peer that had entered the generation of this number; return what holds no more.

        So does a farewell whose author's certificate was revoked since. What it said is in the ledger.
        """
        wrong = []
        for text in saved:
            try:
                self.add(Signed.FromString(bytes.fromhex(text)))
            except (CertificateError, DecodeError, ValueError) as error:
                wrong.append(f"a record of the ledger that does not hold: {error}")
            if self.next is not None and self.next.number <= entered:
                self.enter(self.next)
        return wrong

    def enter(self, generation: Generation) -> None:
        """Note that this peer has entered a generation; a newer one may be next already."""
        self.generation, self.next = generation, self.next if self.next != generation else None
        self._refounds = {number: record for number, record in self._refounds.items() if number >= generation.number}
        self._all = {key: entry for key, entry in self._all.items() if self._counts(entry[2])}

    def _found(self, record: Signed, generation: Generation) -> Generation | None:
        if generation.number < self.newest.number:
            return None
        if generation.number == self.newest.number:
            raise CertificateError(
                f"another refound numbered {generation.number}, founded by {', '.join(generation.founders)}, not by"
                f" {', '.join(self.newest.founders)}: the authority must make a newer one, which ends both"
            )
        self.next, self._refounds[generation.number] = generation, record
        return generation

    def _news(self, said: Farewell | PeerId) -> Said | None:
        """Return what a record means in this generation; nothing, if it is of a later one."""
        peer = said.peer if isinstance(said, Farewell) else said
        if generation_of(peer) != self.generation.number:
            return None
        return said if isinstance(said, Farewell) else (said, self.generation.founded(said))

    def _counts(self, said: Farewell | PeerId | None) -> bool:
        peer = said.peer if isinstance(said, Farewell) else said
        return peer is None or generation_of(peer) >= self.generation.number

    def _keep(self, key: int, subject: str, record: Signed, said: Farewell | PeerId | None = None) -> bool:
        full = len(self._all) >= MOST and record.certificate  # there is always room for the authority's
        if full or not self._counts(said) or any(subject == entry[0] for entry in self._all.values()):
            return False
        self._all[key] = (subject, record, said)
        return True

    def _drop(self, subject: str) -> None:
        self._all = {key: entry for key, entry in self._all.items() if entry[0] != subject}


def digest(record: Signed) -> int:
    """Return 64 bits that stand for what a record says."""
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
