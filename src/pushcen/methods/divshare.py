"""DivShare (Biswas et al., WWW 2025): the model goes out in fragments, each to receivers of its own.

Boosting Asynchronous Decentralized Learning with Model Fragmentation, https://arxiv.org/abs/2410.12918
"""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.codec import Codec, Cut, Fragment
from pushcen.learning import Update
from pushcen.methods.method import Method, Place
from pushcen.protocol import Buffer, Equal, Fragments, Rules


class FragmentUpdate(Update):
    """Plain training; the model is sent in parts, cut by a seed that all clients share."""

    def __init__(self, cut: Cut) -> None:
        self._cut = cut

    def codecs(self) -> dict[int, Codec]:
        """Return the codec of each part; parts are numbered from 1."""
        return {part + 1: Fragment(part, self._cut) for part in range(self._cut.parts)}


@dataclass(frozen=True)
class DivShare(Method):
    """Each coordinate is averaged over the own model and the fragments that hold it.

    merge    w[c] <- (w[c] + sum_j w_j[c]) / (n_c + 1), over the n_c fragments that wait and hold coordinate c
    push     each of `parts` fragments of w to `receivers` peers drawn for it
    """

    name: ClassVar[str] = "divshare"

    parts: int = 5
    """Fragments of a model (1 / Omega)."""
    receivers: int = 2
    """How many peers get each fragment (J)."""
    cut_seed: int = 0
    """Decides which coordinate is in which fragment; the same for all."""

    def __post_init__(self) -> None:
        self.update()
        self.rules(Place("check"))

    def rules(self, place: Place) -> Rules:
        """Weigh the newest of each sender and fragment alike."""
        return Rules(Buffer(limit=0), Equal(), Fragments(self.parts, self.receivers))

    def update(self) -> Update:
        """Send fragments."""
        return FragmentUpdate(Cut(self.parts, self.cut_seed))
