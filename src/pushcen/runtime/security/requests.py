"""Requests for certificates: a site makes its own key, which never leaves it, and the authority signs.

Of a request only the key counts. The name is the one that the authority's keeper says, and has to agree; whatever else
it asks for, such as being an authority itself, is ignored.
"""

from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pushcen.errors import CertificateError
from pushcen.files import write_whole
from pushcen.runtime.network import check_name
from pushcen.runtime.security.certificates import (
    PublicKey,
    fingerprint_of,
    key_bytes,
    member_of,
    new_key,
    read_certificate,
    read_key,
)

LONGEST = 64 << 10
"""Bytes that a request may have; ours have some 400."""


def make_request(folder: Path, name: str = "") -> str:
    """Write `peer.csr`, a request for a certificate, into a peer's folder; return the fingerprint of its key.

    The key is `peer.key`, which is made if it is not there. To renew a certificate, the name need not be said.
    """
    if (folder / "peer.pem").exists():
        known = member_of(read_certificate(folder / "peer.pem"))[1]
        if name not in ("", known):
            raise CertificateError(f"{folder}: is {known}'s, not {name}'s; a folder is for one peer")
        name = known
    if not name:
        raise CertificateError("name: is needed, as there is no certificate yet that would say it")
    check_name(name)
    path = folder / "peer.key"
    key = read_key(path) if path.exists() else new_key()
    _check_key(key.public_key(), path)
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        write_whole(path, key_bytes(key), 0o600)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    write_whole(folder / "peer.csr", request.public_bytes(serialization.Encoding.PEM))
    return fingerprint_of(key.public_key())


def read_request(path: Path, name: str) -> PublicKey:
    """Read a request that somebody sent, for the peer of this name; return the key, whose owner has signed it."""
    data = _read_bounded(path)
    if b"PRIVATE KEY" in data:
        raise CertificateError(f"{path}: has a private key in it, which must not leave its site; send peer.csr")
    try:
        request = x509.load_pem_x509_csr(data)
        names = [attribute.value for attribute in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        key = _check_key(request.public_key(), path)
        if not isinstance(request.signature_hash_algorithm, hashes.SHA256):
            raise CertificateError(f"{path}: must be signed with SHA-256, as `pushcen certs request` does")
        signed = request.is_signature_valid
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CertificateError(f"{path}: must be a request in PEM, as `pushcen certs request` makes them") from error
    if not signed:
        raise CertificateError(f"{path}: its signature does not match its key: it was changed, or is somebody else's")
    if len(names) != 1:
        raise CertificateError(f"{path}: must name one peer, and names {len(names)}")
    if names[0] != check_name(name):
        raise CertificateError(f"{path}: asks for the name {names[0]!r:.80}, not {name!r}")
    return key


def _check_key(key: object, path: Path) -> PublicKey:
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise CertificateError(f"{path}: the key must be ECDSA P-256, as `pushcen certs request` makes them")
    return key


def _read_bounded(path: Path) -> bytes:
    if not path.is_file():
        raise CertificateError(f"{path}: must be a file, the peer.csr of a site")
    try:
        with path.open("rb") as file:
            data = file.read(LONGEST + 1)
    except OSError as error:
        raise CertificateError(f"{path}: {error.strerror}") from error
    if len(data) > LONGEST:
        raise CertificateError(f"{path}: is longer than {LONGEST} bytes, and no request of ours")
    return data
