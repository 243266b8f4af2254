"""Generations: the authority may let a network be founded anew, after which all mass of before counts no more.

The generation is the high part of every epoch, so whatever is said or sent in an epoch shows it. A network begins in
generation 0, with the founders of its description; each `refound` record of the authority numbers a later one, and
lists who founds that.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pushcen.errors import CertificateError
from pushcen.protocol import UNIT, PeerId, epoch_of, name_of
from pushcen.protocol.messages import LIMIT
from pushcen.runtime.network import FIRST_EPOCH, check_name
from pushcen.runtime.security.trust import Fields

SHIFT = 48  # bits of an epoch below its generation: milliseconds until the year 10,889
MOST = LIMIT >> SHIFT


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
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def first(self) -> int:
        """The epoch in which founders hold their mass."""
        return self.number << SHIFT | FIRST_EPOCH

    @property
    def mass(self) -> int:
        """All mass that this generation ever had, in quanta."""
        return len(self.founders) * UNIT

    def later(self, *least: int) -> int:
        """Give an epoch of this generation that founds nothing, and is no lower than any of these of it.

        >>> Generation(1, ()).later(5, 7) - Generation(1, ()).first, Generation(0, ()).later(0, 1700000000000)
        (6, 1700000000000)
        """
        base = self.number << SHIFT
        return max(self.first + 1, *(base | number for number in least if number >> SHIFT in (0, self.number)))

    def founded(self, peer: PeerId) -> int:
        """Say what a peer started with in its epoch."""
        return UNIT if name_of(peer) in self.founders and epoch_of(peer) == self.first else 0

    def fields(self) -> Fields:
        """Write the record that founds this generation, to be signed by the authority."""
        fields = {"kind": "refound", "generation": self.number, "founders": list(self.founders)}
        return fields | ({"settings": dict(self.settings)} if self.settings else {})

    @classmethod
    def of(cls, fields: Fields) -> "Generation":
        """Read such a record."""
        try:
            number, founders, settings = fields["generation"], fields["founders"], fields.get("settings", {})
            if type(number) is not int or not 1 <= number <= MOST:
                raise ValueError(f"generation = {number!r:.40}: must be a whole number from 1 to {MOST}")
            if not isinstance(founders, list) or len(set(founders)) != len(founders) or not founders:
                raise ValueError("founders: must be one or more names, each once")
            if not isinstance(settings, dict):
                raise ValueError("settings: must be a table")
            return cls(number, tuple(map(check_name, founders)), settings)
        except (KeyError, TypeError, ValueError) as error:
            raise CertificateError(f"a refound that is not well-formed: {error}") from error


def generation_of(peer: PeerId) -> int:
    """Take the generation out of an identity.

    >>> generation_of("ann/1"), generation_of("ann/1700000000000"), generation_of("ann/562949953421313")
    (0, 0, 2)
    """
    return epoch_of(peer) >> SHIFT
