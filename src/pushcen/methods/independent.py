"""Independent: every client trains alone. What working together has to beat."""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.methods.method import Method, Place
from pushcen.protocol import Rules
from pushcen.protocol import rules as protocol


@dataclass(frozen=True)
class Independent(Method):
    """Nothing is sent, nothing is received."""

    name: ClassVar[str] = "independent"

    def rules(self, place: Place) -> Rules:
        """Talk to nobody."""
        return protocol.independent()
