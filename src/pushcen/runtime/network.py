"""What a network is: its name, who founded it, and the fingerprint that every certificate refers to."""

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cached_property

from pushcen.errors import CertificateError

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
ANY = "any"
"""Every certificate holds for this name, too: with it is called who is not known by name yet."""
FIRST_EPOCH = 1
"""The epoch in which a founder holds its mass. All others are taken from the clock."""


@dataclass(frozen=True)
class NetworkDescription:
    """The description that `pushcen certs init` signs. Its founders start with one unit of mass each.

    >>> NetworkDescription("wards", ("ann", "bob"), nonce="00").fingerprint
    'd5bf8f5ca8f2f00b525a1a3b463ede8a'
    """

    name: str
    founders: tuple[str, ...]
    nonce: str

    @cached_property
    def body(self) -> bytes:
        """The bytes that are signed."""
        return json.dumps(
            {"kind": "network", "name": self.name, "founders": list(self.founders), "nonce": self.nonce},
            sort_keys=True,
        ).encode()

    @cached_property
    def fingerprint(self) -> str:
        """Names this network and no other."""
        return hashlib.sha256(self.body).hexdigest()[:32]

    @classmethod
    def of(cls, body: bytes) -> "NetworkDescription":
        """Read the bytes that were signed."""
        try:
            fields = json.loads(body)
            network = cls(fields["name"], tuple(fields["founders"]), fields["nonce"])
            check_name(network.name)
            for founder in network.founders:
                check_name(founder)
        except (ValueError, TypeError, KeyError) as error:
            raise CertificateError(f"not a network's description: {error!r}") from error
        return network


def check_name(name: str) -> str:
    """Take `name` for a peer's name, if it can be one: it becomes part of a host name.

    >>> check_name("Ward 3")
    Traceback (most recent call last):
    pushcen.errors.CertificateError: name 'Ward 3': must be lower-case letters, digits and hyphens, 63 at most
    """
    if name == ANY:
        raise CertificateError(f"name {name!r}: stands for whoever listens at an address, and can be nobody's")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise CertificateError(f"name {name!r}: must be lower-case letters, digits and hyphens, 63 at most")
    return name
