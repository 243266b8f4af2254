"""Independent: every client trains alone. What working together has to beat."""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.methods.method import Method, Place
from pushcen.protocol import Equal, Nobody, NoInbox, Rules


@dataclass(frozen=True)
class Independent(Method):
    """Nothing is sent, nothing is received: w is what local training makes of it."""

    name: ClassVar[str] = "independent"

    def rules(self, place: Place) -> Rules:
        """Send to nobody, and take nothing in."""
        return Rules(NoInbox(), Equal(), Nobody())
