"""How far each peer has come, under its own signature: so is found out who goes on from an older copy of its state.

Every push carries its sender's word: epoch, boot and the sequence of its newest envelope, signed after the commit that
made it so. A receiver keeps the newest word of each sender, makes it durable with the credit, and returns it with every
hello to that sender. A peer that gets its own word back and finds it ahead of its ledger runs on an older copy. Nobody
else can say so: what is not under its own signature changes nothing.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from pushcen.errors import CertificateError
from pushcen.protocol import ANSWER, Envelope, Peer, epoch_of, name_of
from pushcen.protocol.messages import LIMIT, check_id, peer_id
from pushcen.runtime.members import Member
from pushcen.runtime.network import SHIFT
from pushcen.runtime.security.identity import Identity
from pushcen.runtime.wire import Hello, Signed

KEY = "claim "
"""What the keys of the ledger begin with that have a peer's word each."""
LONGEST = 4096
"""Bytes that a word may have, certificate included."""
_DECODER = json.JSONDecoder()


class Progress(NamedTuple):
    """How far a peer has come."""

    epoch: int
    boot: int
    sequence: int

    @classmethod
    def of(cls, peer: Peer) -> "Progress":
        """Return how far a peer has come."""
        return cls(epoch_of(peer.me), peer.boot, peer.sequence)

    @property
    def generation(self) -> int:
        """The generation that it is in."""
        return self.epoch >> SHIFT

    def ahead_of(self, other: "Progress") -> bool:
        """Return whether a ledger that has come to `other` is older than one that has been here.

        Within an epoch neither boot nor sequence ever falls. A copy that was started again may have the later boot.

        >>> Progress(1, boot=3, sequence=20).ahead_of(Progress(1, boot=4, sequence=10))
        True
        >>> Progress(1, boot=3, sequence=20).ahead_of(Progress(2, boot=1, sequence=0))
        False
        """
        if self.epoch != other.epoch:
            return self.epoch > other.epoch
        return self.boot > other.boot or self.sequence > other.sequence


NOWHERE = Progress(0, 0, 0)


class Word(NamedTuple):
    """A signed word, and what it says."""

    name: str
    progress: Progress
    signed: Signed


class Claims:
    """The newest word of each peer, and the newest of its own that this one was shown.

    A word that came with a push is checked when it is needed, before a commit or a hello: of many pushes only the last.
    """

    def __init__(self, identity: Identity) -> None:
        self.own = NOWHERE  # how far this peer has been, by its own signature
        self._identity = identity
        self._unchecked: dict[str, Word] = {}
        self._kept: dict[str, Word] = {}
        self._unsaved: dict[str, str] = {}  # by the ledger's key
        self._mine = (NOWHERE, 0, Signed())  # its own word, and by which certificate

    def sign(self, progress: Progress) -> Signed:
        """Return this peer's own word on how far it has come, which is signed once for each event."""
        certificate = self._identity.serial
        if (progress, certificate) != self._mine[:2]:
            epoch, boot, sequence = progress
            peer = peer_id(self._identity.name, epoch)
            signed = self._identity.sign({"kind": "progress", "peer": peer, "boot": boot, "sequence": sequence})
            self._mine = (progress, certificate, signed)
        return self._mine[2]

    def read(self, data: bytes, envelope: Envelope) -> Word:
        """Read the word that came with an envelope; refuse what its sender cannot have meant."""
        word = read_word(Signed.FromString(data))
        name, progress = word.name, word.progress
        if envelope.sender != f"{name}/{progress.epoch}":
            raise CertificateError(f"{envelope.sender} pushes with the word of {name}/{progress.epoch}")
        if envelope.part != ANSWER and progress.sequence < envelope.sequence:  # an answer has its question's number
            raise CertificateError(f"{envelope.sender} pushes {envelope.sequence} and signs {progress.sequence}")
        return word

    def take(self, word: Word) -> None:
        """Take up a word that came with a push, if it is the newest of its peer; its signature is checked later."""
        before = self._unchecked.get(word.name) or self._kept.get(word.name)
        if before is None or _order(word) > _order(before):
            self._unchecked[word.name] = word

    def check(self, name: str = "") -> list[str]:
        """Check the words that came since, of one peer or of all, and keep those that hold; return what is wrong."""
        wrong = []
        for who in [name] if name else list(self._unchecked):
            word = self._unchecked.pop(who, None)
            if word is None:
                continue
            try:
                author, _ = self._identity.verify(word.signed, expired=True)
                if author != who:
                    raise CertificateError(f"it is by {author or 'the authority'}")
                self._kept[who] = word
                self._unsaved[KEY + who] = word.signed.SerializeToString().hex()
            except CertificateError as error:
                wrong.append(f"{who} pushed with a word that does not hold: {error}")
        return wrong

    def give_back(self, hello: Hello, name: str, member: Member | None) -> None:
        """Return to a peer its own newest word that was checked; or, if that is of a later epoch, its word on where it
        listens.
        """
        word, known = self._kept.get(name), (0, 0)
        if word is not None:
            hello.returned.CopyFrom(word.signed)
            known = word.progress[:2]
        if member is not None and member.record is not None and member.version[0] > known[0]:
            hello.returned.CopyFrom(member.record)
            known = member.version
        if member is not None and member.contact is not None:
            known = max(known, (epoch_of(member.contact.peer), member.contact.boot))
        if known[0]:  # for peers of version 1.0, which go by this
            hello.known, hello.known_boot = f"{name}/{known[0]}", known[1]

    def outdates(self, signed: Signed, ledger: Progress) -> bool:
        """Return whether a word that somebody returns is ahead of this peer's ledger; refuse what it has not signed."""
        word = read_word(signed)
        if not word.progress.ahead_of(ledger):
            return False  # as of every honest peer: nothing to check
        author, _ = self._identity.verify(signed, expired=True)
        if author != self._identity.name or word.name != author:
            raise CertificateError(f"a word on {word.name} by {author or 'the authority'}")
        if word.progress.ahead_of(self.own):
            self.own = word.progress
        return True

    def unsaved(self) -> dict[str, str]:
        """Return what is to be made durable, by the ledger's keys."""
        return dict(self._unsaved)

    def saved(self, rows: Mapping[str, str]) -> None:
        """Note that this is durable now."""
        self._unsaved = {key: value for key, value in self._unsaved.items() if rows.get(key) != value}

    def restore(self, saved: Mapping[str, object]) -> list[str]:
        """Take over what a ledger has; return what does not hold any more, as with a certificate revoked since."""
        wrong = []
        for key, value in saved.items():
            if key.startswith(KEY):
                try:
                    self.take(read_word(Signed.FromString(bytes.fromhex(str(value)))))
                except (CertificateError, DecodeError, ValueError) as error:
                    wrong.append(f"{key} in the ledger does not hold: {error}")
        wrong += self.check()
        self._unsaved.clear()
        return wrong


def read_word(signed: Signed) -> Word:
    """Read a word, with its signature unchecked. A member record is one, too: with no sequence."""
    try:
        if signed.ByteSize() > LONGEST:
            raise ValueError(f"{signed.ByteSize()} bytes, {LONGEST} at most")
        fields = _read_json(signed.body)
        if fields["kind"] not in ("progress", "member"):
            raise ValueError(f"kind = {fields['kind']!r:.40}")
        peer, boot, sequence = check_id(fields["peer"]), fields["boot"], fields.get("sequence", 0)
        if not all(type(number) is int and 0 <= number <= LIMIT for number in (boot, sequence)):
            raise ValueError(f"boot and sequence must be whole numbers from 0 to {LIMIT}")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CertificateError(f"a peer's word that is not well-formed: {error!r:.100}") from error
    return Word(name_of(peer), Progress(epoch_of(peer), boot, sequence), signed)


def _read_json(body: bytes) -> Any:
    """Read what `json.loads` does; a text that is written as everybody writes it takes a third of the time.

    >>> _read_json(b'{"boot": 1}'), _read_json(' {"boot": 1} '.encode("utf-16"))
    ({'boot': 1}, {'boot': 1})
    """
    try:
        text = body.decode()
        found, end = _DECODER.raw_decode(text)
        if end == len(text):
            return found
    except ValueError:
        pass
    return json.loads(body)


def _order(word: Word) -> tuple[int, int, int]:
    epoch, boot, sequence = word.progress
    return epoch, sequence, boot
