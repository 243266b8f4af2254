"""What models weigh in the next average: the mass that came with them, all the same, or fixed coefficients."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pushcen.errors import OptionError
from pushcen.protocol.messages import UNIT


class Weights(Protocol):
    """What a client's own model and each waiting one weigh in the next average, in whole quanta, not normalised."""

    @property
    def moves_mass(self) -> bool:
        """Whether pushes carry mass."""

    def own(self, held: int, /) -> int:
        """Return what the client's own model weighs."""

    def of(self, share: int, sender: str, /) -> int:
        """Return what a model weighs that came with `share` from `sender`."""


@dataclass(frozen=True, slots=True)
class ByMass:
    """A model weighs the mass that came with it: push-sum, the paper's Eqs. (pushsum-mass) and (pushsum-model)."""

    moves_mass: bool = field(default=True, init=False)

    def own(self, held: int) -> int:
        """Return what is held."""
        return held

    def of(self, share: int, _sender: str) -> int:
        """Return the share."""
        return share


@dataclass(frozen=True, slots=True)
class Equal:
    """Every model weighs the same. Pushes carry no mass."""

    moves_mass: bool = field(default=False, init=False)

    def own(self, _held: int) -> int:
        """Return one unit."""
        return UNIT

    def of(self, _share: int, _sender: str) -> int:
        """Return one unit."""
        return UNIT


@dataclass(frozen=True, slots=True)
class EvenSplit:
    """A client's own model weighs what an even split over its `receivers` and itself leaves; messages weigh a unit.

    For methods that count mass themselves, in what they send: the protocol moves none.
    """

    receivers: int
    moves_mass: bool = field(default=False, init=False)

    def own(self, _held: int) -> int:
        """Return one of the parts of a unit."""
        return UNIT // (self.receivers + 1)

    def of(self, _share: int, _sender: str) -> int:
        """Return one unit."""
        return UNIT


@dataclass(frozen=True, slots=True)
class Fixed:
    """Neighbours weigh fixed numbers of quanta, and a client's own model the rest of a unit."""

    coefficients: Mapping[str, int]
    moves_mass: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if any(weight < 0 for weight in self.coefficients.values()) or sum(self.coefficients.values()) > UNIT:
            raise OptionError(f"coefficients = {self.coefficients}: must be 0 or more, and {UNIT} at most in sum")

    def own(self, _held: int) -> int:
        """Return what the neighbours leave of a unit."""
        return UNIT - sum(self.coefficients.values())

    def of(self, _share: int, sender: str) -> int:
        """Return the sender's coefficient; 0, if it has none."""
        return self.coefficients.get(sender, 0)
