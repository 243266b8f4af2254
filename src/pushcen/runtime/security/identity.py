"""Who a peer is, and how it knows who calls: by certificate, or, on one machine, by word alone."""

import json
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
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Identity(Protocol):
    """A peer's name and network, and the means to prove them."""

    name: str
    network: NetworkDescription

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

    def listen(self, server: grpc.aio.Server, address: str) -> int:
        """Make a server listen; return its port."""

    def channel(self, address: str, name: str, options: Options) -> grpc.aio.Channel:
        """Open a channel to the peer of this name, and to nobody else ("any": whoever of the network is there)."""


class Certified:
    """A peer with a certificate of the network's authority: mutual TLS, 1.2 or newer."""

    def __init__(self, folder: Path) -> None:
        self.trust: Trust = read_trust(folder)
        self.network = self.trust.network
        certificate = read_certificate(folder / "peer.pem")
        self._key = read_key(folder / "peer.key")
        self._der, self._chain, self._secret = der(certificate), pem(certificate), key_bytes(self._key)
        self._root = pem(self.trust.root)
        try:
            self.name = self.trust.member(self._der)
            if certificate.public_key() != self._key.public_key():
                raise CertificateError("peer.key is not the key of this certificate")
        except CertificateError as error:
            raise CertificateError(f"{folder / 'peer.pem'}: {error}") from error

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
        [shown] = context.auth_context().get("x509_pem_cert") or [b""]
        name = self.trust.member(shown)
        if claimed and claimed != name:
            raise CertificateError(f"{name} calls itself {claimed!r}")
        return name

    def listen(self, server: grpc.aio.Server, address: str) -> int:
        """Make a server listen, with TLS, for callers that show a certificate."""
        pair = [(self._secret, self._chain)]
        credentials = grpc.ssl_server_credentials(pair, self._root, require_client_auth=True)
        return server.add_secure_port(address, credentials)

    def channel(self, address: str, name: str, options: Options) -> grpc.aio.Channel:
        """Open a channel to the peer of this name, and to nobody else ("any": whoever of the network is there)."""
        credentials = grpc.ssl_channel_credentials(self._root, self._secret, self._chain)
        host = host_of(self.network.fingerprint, name)
        return grpc.aio.secure_channel(address, credentials, [*options, ("grpc.ssl_target_name_override", host)])


class Insecure:
    """A peer with no certificate, which believes every word: for trying things out on one machine."""

    def __init__(self, name: str, founders: tuple[str, ...]) -> None:
        self.name = check_name(name)
        self.network = NetworkDescription("insecure", founders, nonce="insecure")

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

    def listen(self, server: grpc.aio.Server, address: str) -> int:
        """Make a server listen on this machine only."""
        if not _is_here(address):
            raise OptionError(
                f"listen = {address}: --insecure is for {', '.join(LOOPBACK)} only; use --certs elsewhere"
            )
        return server.add_insecure_port(address)

    def channel(self, address: str, name: str, options: Options) -> grpc.aio.Channel:  # noqa: ARG002
        """Open a channel in plain text."""
        if not _is_here(address):
            raise OptionError(f"address {address}: --insecure is for {', '.join(LOOPBACK)} only; use --certs elsewhere")
        return grpc.aio.insecure_channel(address, options)


def _is_here(address: str) -> bool:
    return address.startswith("unix:") or address.rpartition(":")[0] in LOOPBACK
