"""Who a peer is, and how it knows who calls: by certificate, or, on one machine, by word alone."""

import datetime
import json
import os
from pathlib import Path
from typing import Any, Protocol

import grpc

from pushcen.errors import CertificateError, OptionError
from pushcen.runtime.network import NetworkDescription, check_name
from pushcen.runtime.security.authority import read_trust
from pushcen.runtime.security.certificates import der, host_of, key_bytes, pem, read_certificate, read_key
from pushcen.runtime.security.trust import Fields, Trust, sign
from pushcen.runtime.wire import Signed

Context = grpc.aio.ServicerContext[Any, Any]
Options = list[tuple[str, Any]]
os.environ.setdefault("GRPC_DNS_RESOLVER", "native")  # gRPC's own hangs where only a hosts file knows a name
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Identity(Protocol):
    """A peer's name and network, and the means to prove them."""

    name: str
    network: NetworkDescription
    serial: int
    """The number of its certificate; it changes when that is renewed."""
    until: datetime.datetime | None
    """When its certificate ends, or the authority's, if that is earlier."""

    @property
    def revoked(self) -> bool:
        """Whether its certificate was revoked."""

    def renew(self) -> bool:
        """Take over a newer certificate that was put into its folder; return whether there was one.

        A `CertificateError` says what is wrong with the one that is there; this peer goes on with the one that it has.
        """

    @property
    def revision(self) -> int:
        """The number of the list of revoked certificates."""

    def sign(self, fields: Fields) -> Signed:
        """Sign a statement about this network."""

    def verify(self, signed: Signed, *, expired: bool = False) -> tuple[str | None, Fields]:
        """Check a statement; return who made it (None: the authority) and what it says."""

    def revoke(self, signed: Signed) -> bool:
        """Take over a newer list of revoked certificates; return whether it was newer."""

    def caller(self, context: Context, claimed: str) -> str:
        """Return the name of the peer that calls; refuse it with a `CertificateError` if it is none of ours."""

    def shown(self, context: Context) -> bytes:
        """Return the caller's certificate. Ask only while its call lasts: gRPC crashes later."""

    def member(self, shown: bytes, claimed: str) -> str:
        """Return whose certificate it is, as `caller` does: for what lasts longer than one look."""

    def check_listen(self, address: str) -> None:
        """Refuse an address at which this identity must not be used."""

    def listen(self, server: grpc.aio.Server, address: str) -> int:
        """Make a server listen; return its port."""

    def channel(self, address: str, name: str, options: Options) -> grpc.aio.Channel:
        """Open a channel to the peer of this name, and to nobody else ("any": whoever of the network is there)."""


class Certified:
    """A peer with a certificate of the network's authority: mutual TLS, 1.2 or newer."""

    def __init__(self, folder: Path) -> None:
        self.trust: Trust = read_trust(folder)
        self.network, self.name, self.serial = self.trust.network, "", 0
        self.until: datetime.datetime | None = None
        self._folder, self._root = folder, pem(self.trust.root)
        self._seen: list[tuple[int, int, int]] = []
        self.renew()

    def renew(self) -> bool:
        """Take over a newer certificate that was put into its folder; return whether there was one."""
        paths = [self._folder / "peer.pem", self._folder / "peer.key"]
        seen = [_stamp(path) for path in paths]
        if seen == self._seen:
            return False
        certificate, key = read_certificate(paths[0]), read_key(paths[1])
        try:
            name = self.trust.member(der(certificate))
            if self.name and name != self.name:
                raise CertificateError(f"is {name}'s, not {self.name}'s")
            if certificate.public_key() != key.public_key():
                raise CertificateError("peer.key is not the key of this certificate")
        except CertificateError as error:
            raise CertificateError(f"{paths[0]}: {error}") from error
        before, self._seen = self.serial, seen
        self.name, self.serial, self._key = name, certificate.serial_number, key
        self._der, self._shown = der(certificate), (key_bytes(key), pem(certificate))
        self.until = min(certificate.not_valid_after_utc, self.trust.root.not_valid_after_utc)
        return self.serial != before

    @property
    def revoked(self) -> bool:
        """Whether its certificate was revoked."""
        return self.serial in self.trust.revoked

    @property
    def revision(self) -> int:
        """The number of the list of revoked certificates."""
        return self.trust.revision

    def sign(self, fields: Fields) -> Signed:
        """Sign a statement about this network."""
        return sign({**fields, "network": self.network.fingerprint}, self._key, self._der)

    def verify(self, signed: Signed, *, expired: bool = False) -> tuple[str | None, Fields]:
        """Check a statement; return who made it (None: the authority) and what it says."""
        return self.trust.verify(signed, expired=expired)

    def revoke(self, signed: Signed) -> bool:
        """Take over a newer list of revoked certificates; return whether it was newer."""
        return self.trust.revoke(signed)

    def caller(self, context: Context, claimed: str) -> str:
        """Return the name of the peer that calls, by its certificate; what it claims has to agree."""
        return self.member(self.shown(context), claimed)

    def shown(self, context: Context) -> bytes:
        """Return the caller's certificate. Ask only while its call lasts: gRPC crashes later."""
        [shown] = context.auth_context().get("x509_pem_cert") or [b""]
        return bytes(shown)

    def member(self, shown: bytes, claimed: str) -> str:
        """Return whose certificate it is; what the caller claims has to agree."""
        name = self.trust.member(shown)
        if claimed and claimed != name:
            raise CertificateError(f"{name} calls itself {claimed!r}")
        return name

    def check_listen(self, address: str) -> None:
        """Refuse no address."""

    def listen(self, server: grpc.aio.Server, address: str) -> int:
        """Make a server listen, with TLS, for callers that show a certificate."""
        shown = self._shown

        def renewed() -> Any:
            """Return what to show from now on, if that is not what is shown; gRPC asks at every handshake."""
            nonlocal shown
            before, shown = shown, self._shown
            return grpc.ssl_server_certificate_configuration([shown], self._root) if shown is not before else None

        first = grpc.ssl_server_certificate_configuration([shown], self._root)
        credentials = grpc.dynamic_ssl_server_credentials(first, renewed, require_client_authentication=True)
        return server.add_secure_port(address, credentials)

    def channel(self, address: str, name: str, options: Options) -> grpc.aio.Channel:
        """Open a channel to the peer of this name, and to nobody else ("any": whoever of the network is there)."""
        credentials = grpc.ssl_channel_credentials(self._root, *self._shown)
        host = host_of(self.network.fingerprint, name)
        return grpc.aio.secure_channel(address, credentials, [*options, ("grpc.ssl_target_name_override", host)])


class Insecure:
    """A peer with no certificate, which believes every word: for trying things out on one machine."""

    def __init__(self, name: str, founders: tuple[str, ...]) -> None:
        self.name, self.serial = check_name(name), 0
        self.until: datetime.datetime | None = None
        self.network = NetworkDescription("insecure", founders, nonce="insecure")

    @property
    def revoked(self) -> bool:
        """Whether it was revoked: never."""
        return False

    def renew(self) -> bool:
        """Renew nothing: there is no certificate."""
        return False

    @property
    def revision(self) -> int:
        """Revoke nothing, ever."""
        return 0

    def sign(self, fields: Fields) -> Signed:
        """Write a statement down, with the name in place of a certificate."""
        body = json.dumps({**fields, "network": self.network.fingerprint}, sort_keys=True).encode()
        return Signed(body=body, certificate=self.name.encode())

    def verify(self, signed: Signed, *, expired: bool = False) -> tuple[str | None, Fields]:  # noqa: ARG002
        """Read a statement."""
        try:
            fields = json.loads(signed.body)
            if fields["network"] != self.network.fingerprint:
                raise CertificateError("a statement about another network")
            return signed.certificate.decode() or None, fields
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise CertificateError(f"a statement that is not well-formed: {error!r:.100}") from error

    def revoke(self, signed: Signed) -> bool:  # noqa: ARG002
        """Revoke nothing: there are no certificates."""
        return False

    def caller(self, context: Context, claimed: str) -> str:  # noqa: ARG002
        """Return the name that the caller claims."""
        return check_name(claimed)

    def shown(self, context: Context) -> bytes:  # noqa: ARG002
        """Return nothing: nobody shows a certificate."""
        return b""

    def member(self, shown: bytes, claimed: str) -> str:  # noqa: ARG002
        """Return the name that the caller claims."""
        return check_name(claimed)

    def check_listen(self, address: str) -> None:
        """Refuse all but this machine."""
        if not _is_here(address):
            raise OptionError(
                f"listen = {address}: --insecure is for {', '.join(LOOPBACK)} only; use --certs elsewhere"
            )

    def listen(self, server: grpc.aio.Server, address: str) -> int:
        """Make a server listen on this machine only."""
        self.check_listen(address)
        return server.add_insecure_port(address)

    def channel(self, address: str, name: str, options: Options) -> grpc.aio.Channel:  # noqa: ARG002
        """Open a channel in plain text."""
        if not _is_here(address):
            raise OptionError(f"address {address}: --insecure is for {', '.join(LOOPBACK)} only; use --certs elsewhere")
        return grpc.aio.insecure_channel(address, options)


def _stamp(path: Path) -> tuple[int, int, int]:
    """Return what changes when a file does."""
    try:
        status = path.stat()
    except OSError as error:
        raise CertificateError(f"{path}: {error.strerror}") from error
    return status.st_ino, status.st_mtime_ns, status.st_size


def _is_here(address: str) -> bool:
    return address.startswith("unix:") or address.rpartition(":")[0] in LOOPBACK
