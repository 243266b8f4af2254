"""Keys and X.509 certificates of a network: made by its authority, read and checked by its peers."""

import datetime
import hashlib
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pushcen.errors import CertificateError
from pushcen.runtime.network import ANY, check_name

Key = ec.EllipticCurvePrivateKey
PublicKey = ec.EllipticCurvePublicKey
Certificate = x509.Certificate
_SKEW = datetime.timedelta(days=1)  # certificates hold from a day ago, for those whose clocks are late


def new_key() -> Key:
    """Make a private key (ECDSA, P-256)."""
    return ec.generate_private_key(ec.SECP256R1())


def key_bytes(key: Key) -> bytes:
    """Write a key as PEM."""
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def fingerprint_of(key: PublicKey) -> str:
    """Return what two people compare over the telephone: 32 digits that no other key has.

    >>> from cryptography.hazmat.primitives.asymmetric import ec
    >>> fingerprint_of(ec.derive_private_key(1, ec.SECP256R1()).public_key())
    '5cd2 52fb 0ce8 9324 36fa f8cc d104 0981'
    """
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    digits = hashlib.sha256(key.public_bytes(serialization.Encoding.DER, form)).hexdigest()
    return " ".join(digits[at : at + 4] for at in range(0, 32, 4))


def pem(certificate: Certificate) -> bytes:
    """Write a certificate as PEM."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def der(certificate: Certificate) -> bytes:
    """Write a certificate as DER, which is shorter."""
    return certificate.public_bytes(serialization.Encoding.DER)


def host_of(network: str, name: str = ANY) -> str:
    """Return the host name that stands in a peer's certificate, and that its callers insist on."""
    return f"{name}.{network}.pushcen" if name != ANY else f"{network}.pushcen"


def make_root(key: Key, title: str, days: int) -> Certificate:
    """Make the authority's own certificate."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"pushcen authority of {title}")])
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    return (
        _builder(name, name, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )


def make_certificate(
    key: PublicKey,
    root: Certificate,
    root_key: Key,
    network: str,
    name: str,
    days: float,
    *,
    start: datetime.datetime | None = None,
) -> Certificate:
    """Make a peer's certificate: its name, in the network of this fingerprint, as server and as client."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, check_name(name))])
    hosts = [x509.DNSName(host_of(network, name)), x509.DNSName(host_of(network))]
    link = x509.UniformResourceIdentifier(f"pushcen://{network}/{name}")
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    return (
        _builder(subject, root.subject, key, days, start)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=False)
        .add_extension(x509.SubjectAlternativeName([*hosts, link]), critical=False)
        .sign(root_key, hashes.SHA256())
    )


class MemberCertificate(NamedTuple):
    """A member's certificate, and what every call asks of it, read once."""

    certificate: Certificate
    name: str
    serial: int
    begin: datetime.datetime
    end: datetime.datetime

    def check_date(self, now: datetime.datetime) -> None:
        """Refuse a certificate that has expired or does not hold yet."""
        if not self.begin <= now <= self.end:
            begin, end = f"{self.begin:%Y-%m-%d %H:%M}", f"{self.end:%Y-%m-%d %H:%M}"
            raise CertificateError(f"a certificate that holds from {begin} to {end} UTC")


def member_of(certificate: Certificate) -> tuple[str, str]:
    """Read the network's fingerprint and the peer's name out of a certificate."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        [link] = [u for u in names.get_values_for_type(x509.UniformResourceIdentifier) if u.startswith("pushcen://")]
        network, _, name = link.removeprefix("pushcen://").partition("/")
    except (x509.ExtensionNotFound, ValueError) as error:
        raise CertificateError("a certificate that names no peer of a pushcen network") from error
    return network, check_name(name)


def check_issued(certificate: Certificate, root: Certificate) -> None:
    """Refuse a certificate that the authority did not sign."""
    try:
        certificate.verify_directly_issued_by(root)
    except (ValueError, TypeError, InvalidSignature) as error:
        raise CertificateError("a certificate of another authority") from error


def read_certificate(path: Path) -> Certificate:
    """Read a certificate from a PEM file."""
    try:
        return x509.load_pem_x509_certificate(read(path))
    except ValueError as error:
        raise CertificateError(f"{path}: must be a certificate in PEM") from error


def read_key(path: Path) -> Key:
    """Read a private key from a PEM file."""
    try:
        key = serialization.load_pem_private_key(read(path), None)
    except (ValueError, TypeError) as error:
        raise CertificateError(f"{path}: must be a private key in PEM, without a password") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError(f"{path}: must be an elliptic-curve key, as `pushcen certs` makes them")
    return key


def read(path: Path) -> bytes:
    """Read a file, or say which one is missing."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(f"{path}: {error.strerror}") from error


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: PublicKey,
    days: float,
    start: datetime.datetime | None = None,
) -> x509.CertificateBuilder:
    start = start or datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - _SKEW)
        .not_valid_after(start + datetime.timedelta(days=days))
    )
