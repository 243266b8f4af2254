"""The network's authority: a folder with a key, kept by an operator, that signs who may take part.

authority.key  authority.pem   its key (keep it safe, and off the peers) and certificate
network.signed                 the network's name and founders
revoked.signed                 the list of revoked certificates
refound.signed                 the record on the newest generation, once there is one
issued.json                    what was issued: name, serial, until when, the key's fingerprint
NAME/                          what the peer NAME needs, to be taken to its machine
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pushcen.errors import CertificateError
from pushcen.files import write_whole
from pushcen.protocol import PeerId
from pushcen.protocol.messages import check_id
from pushcen.runtime.network import WEIGHTS, Generation, NetworkDescription, check_name, generation_of
from pushcen.runtime.security.certificates import (
    Certificate,
    Key,
    PublicKey,
    fingerprint_of,
    key_bytes,
    make_certificate,
    make_root,
    new_key,
    pem,
    read,
    read_certificate,
    read_key,
)
from pushcen.runtime.security.trust import Fields, Trust, sign
from pushcen.runtime.wire import Signed

PUBLIC = ("authority.pem", "network.signed", "revoked.signed")
"""What the authority's folder and every peer's have in common."""
REFOUND = "refound.signed"


@dataclass
class Authority:
    """What signs certificates and records of one network."""

    folder: Path
    key: Key
    root: Certificate
    network: NetworkDescription

    @classmethod
    def found(cls, folder: Path, name: str, founders: list[str], days: int = 3650) -> "Authority":
        """Make a new network, whose founders start with mass, in an empty folder."""
        if folder.exists() and any(folder.iterdir()):
            raise CertificateError(f"{folder}: must be empty or not there; it has a network in it, or something else")
        if not founders:
            raise CertificateError("founders: there must be one or more; who founds nothing has nothing to push")
        if len(set(founders)) < len(founders):
            raise CertificateError(f"founders {', '.join(founders)}: each may be named once")
        network = NetworkDescription(check_name(name), tuple(map(check_name, founders)), secrets.token_hex(16))
        key = new_key()
        root = make_root(key, name, days)
        folder.mkdir(parents=True, exist_ok=True)
        authority = cls(folder, key, root, network)
        write_whole(folder / "authority.key", key_bytes(key), 0o600)
        write_whole(folder / "authority.pem", pem(root))
        described = sign(json.loads(network.body), key)
        write_whole(folder / "network.signed", described.SerializeToString())
        authority._write_revoked(0, [])
        write_whole(folder / "issued.json", b"[]\n")
        return authority

    @classmethod
    def open(cls, folder: Path) -> "Authority":
        """Read an authority's folder."""
        return cls(
            folder,
            read_key(folder / "authority.key"),
            read_certificate(folder / "authority.pem"),
            read_trust(folder).network,
        )

    def issue(self, name: str, days: int = 365, out: Path | None = None) -> Path:
        """Make a key and a certificate for a peer, in a folder for its machine; return that."""
        folder = out or self.folder / check_name(name)
        if (folder / "peer.key").exists():
            raise CertificateError(f"{folder}: has a key already; move it away to issue another certificate")
        key = new_key()
        self._answer(name, key.public_key(), days, folder)
        write_whole(folder / "peer.key", key_bytes(key), 0o600)
        return folder

    def sign(self, name: str, key: PublicKey, days: int = 365, out: Path | None = None) -> Path:
        """Make a certificate for a key that a peer made itself; return the folder with all that its machine needs.

        A key stands for one name, and for none any more once a certificate of it was revoked.
        """
        folder, digits = out or self.folder / check_name(name), fingerprint_of(key)
        if key == self.key.public_key():
            raise CertificateError(f"name {name!r}: its key is the authority's own, which only signs")
        revoked = read_trust(self.folder).revoked
        for entry in self.issued():
            if entry.get("key") == digits and entry["name"] != name:
                raise CertificateError(f"name {name!r}: its key {digits} is {entry['name']}'s already")
            if entry.get("key") == digits and int(entry["serial"], 16) in revoked:
                raise CertificateError(
                    f"name {name!r}: a certificate of its key {digits} was revoked; it needs another"
                )
        if (folder / "peer.key").exists() and read_key(folder / "peer.key").public_key() != key:
            raise CertificateError(f"{folder}: has another key in it; move it away to sign this request")
        self._answer(name, key, days, folder)
        return folder

    def revoke(self, name: str) -> Signed:
        """Revoke all certificates issued to `name` up to now; return the new list."""
        serials = [entry["serial"] for entry in self.issued() if entry["name"] == name]
        if not serials:
            names = sorted({entry["name"] for entry in self.issued()})
            raise CertificateError(
                f"name {name!r}: was never issued a certificate; known: {', '.join(names) or 'none'}"
            )
        trust = read_trust(self.folder)
        return self._write_revoked(trust.revision + 1, sorted({*serials, *(f"{s:x}" for s in trust.revoked)}))

    def forget(self, peer: PeerId) -> Signed:
        """Sign the record that writes off a peer that is gone for good."""
        generation = self.generation()
        if generation_of(check_id(peer)) != generation.number:
            raise CertificateError(
                f"{peer}: is of generation {generation_of(peer)}, and this network is in {generation.number} by now;"
                " what was of another counts no more, and need not be forgotten"
            )
        return self._sign({"kind": "forget", "peer": peer, "founded": generation.founded(peer)})

    def refound(
        self,
        founders: Sequence[str],
        number: int | None = None,
        settings: Mapping[str, str] | None = None,
        *,
        new_weights: bool = False,
    ) -> Signed:
        """Sign the record that lets the network be founded anew, and keep it, so that its number is not used again.

        It has all that was ever changed for all, so that who was away for long needs the newest record only.
        """
        before = self.generation()
        newest = before.number
        number = newest + 1 if number is None else number
        changed = {**before.settings, **(settings or {}), **({WEIGHTS: str(number)} if new_weights else {})}
        generation = Generation(number, tuple(founders), changed)
        if generation.number <= newest:
            raise CertificateError(f"generation {generation.number}: must be above {newest}, which there has been")
        revoked = read_trust(self.folder).revoked
        valid = {entry["name"] for entry in self.issued() if int(entry["serial"], 16) not in revoked}
        if strangers := [name for name in founders if name not in valid]:
            raise CertificateError(
                f"founders {', '.join(strangers)}: must have a certificate that is not revoked, or nobody would have"
                f" their mass; who has one: {', '.join(sorted(valid)) or 'nobody'}"
            )
        Generation.of(generation.fields())
        signed = self._sign(generation.fields())
        write_whole(self.folder / REFOUND, signed.SerializeToString())
        return signed

    def generation(self) -> Generation:
        """Return which generation the network is in, by what this folder has."""
        if not (self.folder / REFOUND).exists():
            return Generation(0, self.network.founders)
        author, fields = read_trust(self.folder).verify(self.newest_refound())
        if author is not None:
            raise CertificateError(f"{self.folder / REFOUND}: must be signed by the authority, not by {author}")
        return Generation.of(fields)

    def newest_refound(self) -> Signed:
        """Return the record on the newest generation."""
        return read_signed(self.folder / REFOUND)

    def issued(self) -> list[dict[str, Any]]:
        """List what was issued."""
        try:
            listed: list[dict[str, Any]] = json.loads(read(self.folder / "issued.json"))
        except ValueError as error:
            raise CertificateError(f"{self.folder / 'issued.json'}: must be JSON") from error
        return listed

    def _answer(self, name: str, key: PublicKey, days: int, folder: Path) -> None:
        """Make a certificate, note it, and write it down with all that is public."""
        certificate = make_certificate(key, self.root, self.key, self.network.fingerprint, name, days)
        serial, until = f"{certificate.serial_number:x}", f"{certificate.not_valid_after_utc:%Y-%m-%d}"
        issued = [*self.issued(), {"name": name, "serial": serial, "until": until, "key": fingerprint_of(key)}]
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / "issued.json", (json.dumps(issued, indent=1) + "\n").encode())
        for file in [*PUBLIC, REFOUND] if (self.folder / REFOUND).exists() else PUBLIC:
            write_whole(folder / file, read(self.folder / file))
        write_whole(folder / "peer.pem", pem(certificate))

    def _sign(self, fields: Fields) -> Signed:
        return sign({**fields, "network": self.network.fingerprint}, self.key)

    def _write_revoked(self, number: int, serials: list[str]) -> Signed:
        signed = self._sign({"kind": "revoked", "number": number, "serials": serials})
        write_whole(self.folder / "revoked.signed", signed.SerializeToString())
        return signed


def read_trust(folder: Path) -> Trust:
    """Read what a folder of the authority or of a peer says about the network."""
    root = read_certificate(folder / "authority.pem")
    network, revoked = (read_signed(folder / name) for name in ("network.signed", "revoked.signed"))
    return Trust(root, network, revoked)


def read_signed(path: Path) -> Signed:
    """Read a signed statement from a file."""
    try:
        return Signed.FromString(read(path))
    except Exception as error:  # protobuf's own
        raise CertificateError(f"{path}: must be a signed statement") from error
