"""The references of one peer: what it offers, holds, is offered, and says that it holds.

An offer is a statement signed by its owner: the reference's name, and the fingerprint of its numbers. Whoever passes
the reference on passes the offer on, too.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from pushcen.codec import Payload, Reference, payload_size, read_reference
from pushcen.codec.wire import HEADER, NO_REFERENCE, Incoming
from pushcen.errors import CertificateError, PayloadError
from pushcen.learning import OFFERED, Learner, Payloads
from pushcen.references import HOLDS, LIMIT, ReferenceName
from pushcen.runtime.claims import LONGEST
from pushcen.runtime.members import Member
from pushcen.runtime.network import check_name
from pushcen.runtime.reference_files import ReferenceFiles
from pushcen.runtime.references import ServedReferences
from pushcen.runtime.security.identity import Identity
from pushcen.runtime.shared import Refusal
from pushcen.runtime.state_folder import File
from pushcen.runtime.wire import Hello, Holding, Signed

_LENGTH, _REFERENCE = slice(8, 16), slice(32, 48)  # of a payload's header: docs/wire-format.md
_FINGERPRINT = len(NO_REFERENCE)


class Offer(NamedTuple):
    """An owner's signed statement about a reference."""

    name: ReferenceName
    fingerprint: bytes
    signed: Signed


class HeldReference(NamedTuple):
    """A reference that is held: its offer, its message, its numbers, its file."""

    offer: Offer
    payload: Payload
    reference: Reference
    file: File


class Plan(NamedTuple):
    """To which references a push may be the difference, beside the start, and what is offered, by name, if anything."""

    candidates: list[HeldReference]
    offer: ReferenceName | None = None

    @property
    def towards(self) -> list[Payload]:
        """The references, as a learner takes them."""
        return [held.payload for held in self.candidates]


class Offers:
    """All that a peer knows of references, where they move. What is not committed is neither said nor used."""

    def __init__(self, identity: Identity, learner: Learner, folder: Path, renew_after: int) -> None:
        self.names, self.files = ServedReferences(identity.name, renew_after), ReferenceFiles(folder)
        self.size = payload_size(learner.schema, OFFERED)
        self._identity, self._schema, self._start = identity, learner.schema, learner.update.references
        self._durable: frozenset[ReferenceName] = frozenset()
        self._withheld = 0  # the newest generation whose offer was put off

    @property
    def held(self) -> list[HeldReference]:
        """The references held, oldest first."""
        return list(self.names.held.values())

    def said(self) -> list[Holding]:
        """Return what a hello says of the references that this peer holds."""
        return [
            Holding(generation=name.generation, owner=name.owner, fingerprint=held.offer.fingerprint)
            for name, held in self.names.held.items()
            if name in self._durable
        ]

    def find(self, fingerprint: bytes | None) -> HeldReference | None:
        """Return the reference with this fingerprint, if it is held."""
        return next((held for held in self.held if held.offer.fingerprint == fingerprint), None)

    def is_start(self, fingerprint: bytes | None) -> bool:
        """Return whether a message that names this fingerprint needs only the common start, which everybody has."""
        return fingerprint is None or fingerprint in self._start

    def base(self, first: bytes | memoryview) -> Mapping[bytes, Reference]:
        """Return the reference that a payload's header names, by its fingerprint; refuse one that is not held."""
        if len(first) < HEADER:
            raise Refusal("malformed", f"a first piece of {len(first)} bytes: the payload's header alone has {HEADER}")
        fingerprint = bytes(first[_REFERENCE])
        if fingerprint == NO_REFERENCE or fingerprint in self._start:
            return self._start
        held = self.find(fingerprint)
        if held is None:
            raise Refusal("reference", f"the difference to {fingerprint.hex()}, which is not held here")
        return {fingerprint: held.reference}

    def plan(self, there: Sequence[Member], rng: Random | None = None, steps: int = 0) -> Plan:
        """Return the plan for a push: references that all its receivers have, and at most one to be brought to them.

        With `rng`, the steps of a compute event are counted, and the peer may offer its own model.
        """
        offer = self._due(there, rng, steps) if rng is not None else None
        candidates: list[HeldReference] = []
        for held in reversed(self.held):
            name = held.offer.name
            lack = [member for member in there if held.offer.fingerprint not in member.holds.values()]
            brings = not (candidates or offer or self.names.useless(name)) and _would_take(held.offer, lack)
            if name in self._durable and (not lack or brings):
                candidates.append(held)
        return Plan(candidates[::-1], offer)

    def sign(self, name: ReferenceName, payload: Payload) -> Offer:
        """Return this peer's own offer, signed."""
        fingerprint = read_reference(payload).fingerprint
        fields = {"kind": "reference", "owner": name.owner, "generation": name.generation}
        return Offer(name, fingerprint, self._identity.sign({**fields, "fingerprint": fingerprint.hex()}))

    def served(self, plan: Plan, payloads: Payloads, own: HeldReference | None = None) -> None:
        """Note which of a plan's references was used; hold the one that was offered, if any (`own`)."""
        fingerprint = next((payload.reference for payload in payloads.values() if payload.reference), None)
        candidates = [*plan.candidates, *([own] if own else [])]
        chosen = next((held.offer.name for held in candidates if held.offer.fingerprint == fingerprint), None)
        self.names.served(chosen, [held.offer.name for held in plan.candidates])
        if own is not None:
            self.names.offered = max(self.names.offered, own.offer.name.generation)
            self.hold(own)

    def read_offer(self, data: bytes) -> Offer:
        """Return an offer that came; refuse it unless its owner signed it and its reference would be kept."""
        signed = Signed.FromString(data)
        try:
            offer = self._verified(signed)
        except CertificateError as error:
            raise Refusal("record", str(error)) from error
        name, held = offer.name, self.names.held.get(offer.name)
        told = f"reference {name.generation} of {name.owner}"
        if held is not None and held.offer.fingerprint != offer.fingerprint:
            raise Refusal("reference", f"{told} is another one here")
        if held is None and not self.names.follows(name):
            raise Refusal("reference", f"{told} is too far ahead of {self.names.last}")
        if held is None and not self.names.keeps(name):
            raise Refusal("reference", f"{told} is older than those held here")
        return offer

    def check_first(self, first: bytes | memoryview) -> None:
        """Refuse a reference whose payload begins wrongly: with another length, or as a difference itself."""
        if len(first) < HEADER:
            raise Refusal("malformed", f"a first piece of {len(first)} bytes: the payload's header alone has {HEADER}")
        length = int.from_bytes(first[_LENGTH], "little")
        if length != self.size:
            reason = "oversized" if length > self.size else "payload"
            raise Refusal(reason, f"a reference of {length} bytes; here it has {self.size}")
        if bytes(first[_REFERENCE]) != NO_REFERENCE:
            raise Refusal("payload", "a reference that is the difference to another one")

    def read(self, offer: Offer, data: bytes | Incoming) -> Payload:
        """Return a reference's payload, checked from end to end."""
        payload = Payload.parse(data, self._schema)
        if payload.codec != OFFERED:
            raise PayloadError(f"a reference as {payload.codec}: must be {OFFERED}")
        found = read_reference(payload).fingerprint
        if found != offer.fingerprint:
            raise PayloadError(f"a reference with fingerprint {found.hex()}; {offer.fingerprint.hex()} was signed")
        return payload

    def hold(self, held: HeldReference) -> bool:
        """Hold a reference from the next commit on; return whether it is held. If it is not, its file is removed."""
        name, before = held.offer.name, self.held
        kept = self.names.hold(name, held)
        for dropped in before:
            if dropped.offer.name not in self.names.held:
                self.files.drop(dropped.file.name)
        if name.owner == self._identity.name:  # as of a peer that lost its state: its next offer is a later one
            self.names.offered = max(self.names.offered, name.generation)
        if not kept or self.names.held[name] is not held:
            self.files.discard(held.file.name)
        return kept

    def save(self) -> dict[str, Any]:
        """Return the state that a commit writes and `restore` takes; once it is durable, `saved` is called."""
        state = self.names.save()
        state["held"] = [
            [generation, owner, {"file": list(held.file), "signed": held.offer.signed.SerializeToString().hex()}]
            for generation, owner, held in state["held"]
        ]
        return state

    def saved(self, state: Mapping[str, Any]) -> None:
        """Note that this state is durable: what it names may be said and used."""
        self._durable = frozenset(ReferenceName(generation, owner) for generation, owner, _ in state["held"])

    def tidy(self, state: Mapping[str, Any]) -> None:
        """Remove the files that a commit no longer names."""
        self.files.tidy([row["file"][0] for _, _, row in state["held"]])

    def restore(self, state: Mapping[str, Any]) -> list[str]:
        """Take over what a ledger has; return what is wrong with it, such as a certificate that was revoked since."""
        held, wrong = [], []
        for generation, owner, row in state["held"]:
            file = File(*row["file"])
            data = self.files.read(file)
            try:
                offer = self._verified(Signed.FromString(bytes.fromhex(row["signed"])))
                payload = self.read(offer, data)
                held.append([generation, owner, HeldReference(offer, payload, read_reference(payload), file)])
            except (CertificateError, PayloadError, ValueError) as error:
                wrong.append(f"reference {generation} of {owner} in the ledger does not hold: {error}")
        self.names.restore({**state, "held": held})
        self.saved({"held": held})
        return wrong

    def _due(self, there: Iterable[Member], rng: Random, steps: int) -> ReferenceName | None:
        """Count an event's steps; return the name to offer under, or None. If others were first, put it off, once."""
        offer = self.names.due(rng, steps)
        if offer is None or offer.generation <= self._withheld:
            return offer
        if any(name >= offer for member in there for name in member.holds):
            self._withheld = offer.generation
            return None
        return offer

    def _verified(self, signed: Signed) -> Offer:
        """Return the offer if its owner has signed it; anything else is a `CertificateError`."""
        if signed.ByteSize() > LONGEST:
            raise CertificateError(f"an offer of {signed.ByteSize()} bytes, {LONGEST} at most")
        author, fields = self._identity.verify(signed, expired=True)
        try:
            kind, owner, generation = fields["kind"], fields["owner"], fields["generation"]
            fingerprint = bytes.fromhex(fields["fingerprint"])
        except (KeyError, TypeError, ValueError) as error:
            raise CertificateError(f"an offer that is not well-formed: {error!r:.100}") from error
        if kind != "reference" or author is None or owner != author:
            raise CertificateError(f"a reference of {owner!r:.80} that is signed by {author or 'the authority'}")
        if type(generation) is not int or not 0 < generation < LIMIT or len(fingerprint) != _FINGERPRINT:
            raise CertificateError(f"an offer of generation {generation!r:.40}, or with another fingerprint")
        return Offer(ReferenceName(generation, owner), fingerprint, signed)


def read_holds(hello: Hello) -> dict[ReferenceName, bytes]:
    """Return the references that the speaker says it holds; refuse what nobody can hold."""
    if len(hello.holds) > HOLDS:
        raise Refusal("malformed", f"a hello with {len(hello.holds)} references: {HOLDS} at most")
    found = {}
    for holding in hello.holds:
        if not 0 < holding.generation < LIMIT or len(holding.fingerprint) != _FINGERPRINT:
            raise Refusal("malformed", "a hello with a reference that cannot be")
        found[ReferenceName(holding.generation, check_name(holding.owner))] = holding.fingerprint
    return found


def _would_take(offer: Offer, lack: Sequence[Member]) -> bool:
    """Return whether at least half of those that lack a reference would take it: a few who refuse stop nobody."""
    unwilling = [
        member
        for member in lack
        if offer.fingerprint in member.refuses
        or offer.name in member.holds
        or sum(name > offer.name for name in member.holds) >= HOLDS
    ]
    return 2 * len(unwilling) <= len(lack) and len(unwilling) < max(1, len(lack))
