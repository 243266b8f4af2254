"""Whom a peer believes: certificates of the network's authority that are not revoked, and what is signed with them."""

import datetime
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from pushcen.errors import CertificateError
from pushcen.runtime.network import NetworkDescription
from pushcen.runtime.security.certificates import Certificate, Key, MemberCertificate, check_issued, member_of
from pushcen.runtime.wire import Signed

Clock = Callable[[], datetime.datetime]
Fields = dict[str, Any]
_ALGORITHM = ec.ECDSA(hashes.SHA256())


def utc() -> datetime.datetime:
    """Return the time."""
    return datetime.datetime.now(datetime.UTC)


def sign(fields: Fields, key: Key, certificate: bytes = b"") -> Signed:
    """Sign a statement. `certificate` (DER) is the signer's; the authority leaves it out."""
    body = json.dumps(fields, sort_keys=True).encode()
    return Signed(body=body, signature=key.sign(body, _ALGORITHM), certificate=certificate)


class Trust:
    """The authority's certificate, the network it is for, and the newest list of revoked certificates."""

    def __init__(self, root: Certificate, network: Signed, revoked: Signed, clock: Clock = utc) -> None:
        self.root = root
        self.clock = clock
        self._check_signature(network.body, network.signature, root)
        self.network = NetworkDescription.of(network.body)
        self.revoked: frozenset[int] = frozenset()
        self.revision = -1
        self._certificate = lru_cache(maxsize=1024)(self._read_certificate)
        self.revoke(revoked)

    def member(self, certificate: bytes, *, expired: bool = False) -> str:
        """Return the name of the peer that a certificate (DER or PEM) is of, if it is one of ours; else refuse it.

        With `expired`, a certificate whose time is over will do: what was said while it held is still true.
        """
        known = self._certificate(certificate)
        if known.serial in self.revoked:
            raise CertificateError(f"{known.name}'s certificate {known.serial:x} was revoked")
        if not expired:
            known.check_date(self.clock())
        return known.name

    def verify(self, signed: Signed, *, expired: bool = False) -> tuple[str | None, Fields]:
        """Check a statement; return who made it (None: the authority) and what it says."""
        author = None
        signer = self.root
        if signed.certificate:
            author = self.member(signed.certificate, expired=expired)
            signer = self._certificate(signed.certificate).certificate
        self._check_signature(signed.body, signed.signature, signer)
        try:
            fields = json.loads(signed.body)
            if fields["network"] != self.network.fingerprint:
                raise CertificateError("a statement about another network")
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise CertificateError(f"a statement that is not well-formed: {error!r:.100}") from error
        return author, fields

    def revoke(self, signed: Signed) -> bool:
        """Take over a list of revoked certificates, if it is newer than ours; return whether it was."""
        author, fields = self.verify(signed)
        if author is not None or fields.get("kind") != "revoked":
            raise CertificateError("a list of revoked certificates must be signed by the authority")
        if fields["number"] <= self.revision:
            return False
        self.revoked = frozenset(int(serial, 16) for serial in fields["serials"])
        self.revision = fields["number"]
        return True

    def _read_certificate(self, data: bytes) -> MemberCertificate:
        try:
            load = x509.load_pem_x509_certificate if data.startswith(b"-----") else x509.load_der_x509_certificate
            certificate = load(data)
        except ValueError as error:
            raise CertificateError("not a certificate") from error
        check_issued(certificate, self.root)
        network, name = member_of(certificate)
        if network != self.network.fingerprint:
            raise CertificateError(f"{name}'s certificate is for another network of this authority")
        begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        return MemberCertificate(certificate, name, certificate.serial_number, begin, end)

    @staticmethod
    def _check_signature(body: bytes, signature: bytes, signer: Certificate) -> None:
        key = signer.public_key()
        try:
            if not isinstance(key, ec.EllipticCurvePublicKey):
                raise CertificateError("signed with a key of another kind")
            key.verify(signature, body, _ALGORITHM)
        except InvalidSignature as error:
            raise CertificateError("a signature that does not match") from error
