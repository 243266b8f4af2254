"""SWIFT (Bornstein et al., ICLR 2023): wait-free averaging on a fixed graph; neighbours' models stand until renewed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from pushcen.errors import OptionError
from pushcen.methods.method import Method, Place
from pushcen.protocol import Rules
from pushcen.protocol import rules as protocol
from pushcen.protocol.graphs import swift_coefficients


class _Same:
    """A graph as a key: the same object, not an equal one, so that a client's row does not cost a look at all edges."""

    def __init__(self, edges: Mapping[str, Sequence[str]]) -> None:
        self.edges = edges

    def __hash__(self) -> int:
        return id(self.edges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.edges is self.edges


@lru_cache(maxsize=1)
def _rows(graph: _Same) -> dict[str, dict[str, int]]:
    return swift_coefficients(graph.edges)


@dataclass(frozen=True)
class Swift(Method):
    """Fixed coefficients from degrees; every push goes to all neighbours."""

    name: ClassVar[str] = "swift"
    title: ClassVar[str] = "SWIFT"
    needs_graph: ClassVar[bool] = True

    every: int = 1
    """It averages at every so manieth event (s)."""

    def __post_init__(self) -> None:
        protocol.KeepLatest(every=self.every)

    def rules(self, place: Place) -> Rules:
        """Average with this client's row of coefficients."""
        if place.edges is None:
            raise OptionError("method.name = 'swift': needs a fixed graph; set neighbours.kind, or take swift-random")
        if place.me not in place.edges:
            raise OptionError(f"neighbours: the graph has no {place.me}")
        return protocol.swift(_rows(_Same(place.edges))[place.me], place.start, self.every)


@dataclass(frozen=True)
class SwiftRandom(Method):
    """SWIFT as the paper compares it: receivers drawn afresh, equal weights, and what was received stands."""

    name: ClassVar[str] = "swift-random"
    title: ClassVar[str] = "SWIFT, random receivers"

    receivers: int = 10
    every: int = 1

    def __post_init__(self) -> None:
        self.rules(Place("check"))

    def rules(self, place: Place) -> Rules:
        """Average all that stands."""
        return protocol.swift_random(self.receivers, self.every)
