"""What a network is: its name, who founded it, the fingerprint that every certificate refers to; and its generations.

The authority may have a network founded anew, after which all mass of before counts no more. The generation is the
high part of every epoch, so whatever is said or sent in an epoch shows it. A network begins in generation 0, with the
founders of its description; each `refound` record of the authority numbers a later one, and lists who founds that.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pushcen.errors import CertificateError
from pushcen.protocol import UNIT, PeerId, epoch_of, name_of
from pushcen.protocol.messages import LIMIT

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
ANY = "any"
"""Every certificate holds for this name, too: with it is called who is not known by name yet."""
FIRST_EPOCH = 1
"""The epoch in which a founder holds its mass. All others are taken from the clock."""
WEIGHTS = "weights"
"""The setting that has the number of the newest generation that began from new weights."""
_MAY_CHANGE = re.compile(r"(method|training|sparsity)(\.[a-z][a-z0-9_]{0,40}){1,3}|task\.model")
_MOST_SETTINGS, _LONGEST = 64, 200  # and how long a value may be
SHIFT = 48  # bits of an epoch below its generation: milliseconds until the year 10,889
MOST = LIMIT >> SHIFT


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


@dataclass(frozen=True)
class Generation:
    """Who founded the network, this time, with one unit of mass each.

    >>> again = Generation(2, ("ann", "bob"))
    >>> again.founded("ann/562949953421313") == again.founded(f"bob/{again.first}") == UNIT
    True
    >>> again.founded("ann/1"), again.founded(f"ann/{again.later(5)}"), again.founded(f"eve/{again.first}")
    (0, 0, 0)
    """

    number: int
    founders: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    """What all peers run with from then on, whatever their own config says; `WEIGHTS`, if they began from new ones."""

    @property
    def first(self) -> int:
        """The epoch in which founders hold their mass."""
        return self.number << SHIFT | FIRST_EPOCH

    @property
    def mass(self) -> int:
        """All mass that this generation ever had, in quanta."""
        return len(self.founders) * UNIT

    def later(self, *least: int) -> int:
        """Return an epoch of this generation that founds nothing, and is no lower than any of these of it.

        >>> Generation(1, ()).later(5, 7) - Generation(1, ()).first, Generation(0, ()).later(0, 1700000000000)
        (6, 1700000000000)
        """
        base = self.number << SHIFT
        return max(self.first + 1, *(base | number for number in least if number >> SHIFT in (0, self.number)))

    def founded(self, peer: PeerId) -> int:
        """Return what a peer started with in its epoch."""
        return UNIT if name_of(peer) in self.founders and epoch_of(peer) == self.first else 0

    def fields(self) -> dict[str, Any]:
        """Write the record that founds this generation, to be signed by the authority."""
        fields = {"kind": "refound", "generation": self.number, "founders": list(self.founders)}
        return fields | ({"settings": dict(self.settings)} if self.settings else {})

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "Generation":
        """Read such a record."""
        try:
            number, founders, settings = fields["generation"], fields["founders"], fields.get("settings", {})
            if type(number) is not int or not 1 <= number <= MOST:
                raise ValueError(f"generation = {number!r:.40}: must be a whole number from 1 to {MOST}")
            if not isinstance(founders, list) or len(set(founders)) != len(founders) or not founders:
                raise ValueError("founders: must be one or more names, each once")
            return cls(number, tuple(map(check_name, founders)), check_settings(settings, number))
        except (KeyError, TypeError, ValueError) as error:
            raise CertificateError(f"a refound that is not well-formed: {error}") from error


def check_settings(settings: Any, number: int) -> dict[str, str]:
    """Take settings for what the record on a generation of this number may change, if they are.

    >>> check_settings({"method.clusters": "16"}, 1)
    {'method.clusters': '16'}
    >>> check_settings({"runtime.tunnels": "0"}, 1)
    Traceback (most recent call last):
    ValueError: settings: runtime.tunnels = '0': only method, training, sparsity and task.model can be changed for all
    """
    if not isinstance(settings, dict) or len(settings) > _MOST_SETTINGS:
        raise ValueError(f"settings: must be a table of {_MOST_SETTINGS} at most")
    for key, value in settings.items():
        if not isinstance(value, str) or not value.isprintable() or len(value) > _LONGEST:
            raise ValueError(f"settings: {key[:80]} = {value!r:.80}: must be a text of {_LONGEST} characters at most")
        if key == WEIGHTS and (not value.isascii() or not value.isdigit() or not 1 <= int(value) <= number):
            raise ValueError(f"settings: weights = {value!r:.40}: must be a generation from 1 to {number}")
        if key != WEIGHTS and not _MAY_CHANGE.fullmatch(key):
            raise ValueError(
                f"settings: {key[:80]} = {value!r:.80}: only method, training, sparsity and task.model can be changed"
                " for all"
            )
    return dict(settings)


def generation_of(peer: PeerId) -> int:
    """Take the generation out of an identity.

    >>> generation_of("ann/1"), generation_of("ann/1700000000000"), generation_of("ann/562949953421313")
    (0, 0, 2)
    """
    return epoch_of(peer) >> SHIFT


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
