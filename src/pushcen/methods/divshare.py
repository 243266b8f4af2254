"""DivShare (Biswas et al., 2025): the model goes out in fragments, each to receivers of its own."""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.codec import Codec, Cut, Fragment
from pushcen.errors import called
from pushcen.learning import Update
from pushcen.methods.method import Method, Place
from pushcen.protocol import Rules
from pushcen.protocol import rules as protocol


class FragmentUpdate(Update):
    """Plain training; the model is sent in parts, cut by a seed that all clients share."""

    def __init__(self, cut: Cut) -> None:
        self._cut = cut

    def codecs(self) -> dict[int, Codec]:
        """Give every part its codec; parts are numbered from 1."""
        return {part + 1: Fragment(part, self._cut) for part in range(self._cut.parts)}


@dataclass(frozen=True)
class DivShare(Method):
    """Each coordinate is averaged over the own model and the fragments that hold it."""

    name: ClassVar[str] = "divshare"

    parts: int = 5
    """Fragments of a model (1 / Omega)."""
    receivers: int = 2
    """How many peers get each fragment (J)."""
    cut_seed: int = 0
    """Decides which coordinate is in which fragment; the same for all."""

    def __post_init__(self) -> None:
        with called(seed="cut_seed"):
            self.update()
        self.rules(Place("check"))

    def rules(self, place: Place) -> Rules:
        """Average the newest of each sender and fragment, weighed alike."""
        return protocol.divshare(self.parts, self.receivers)

    def update(self) -> Update:
        """Send fragments."""
        return FragmentUpdate(Cut(self.parts, self.cut_seed))
