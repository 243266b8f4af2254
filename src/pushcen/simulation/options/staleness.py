"""What becomes of models that are old when they are merged, and of clients that run ahead of the others."""

import math
from dataclasses import dataclass, replace

from pushcen.checks import check_count, check_number
from pushcen.units import PseudoTime

_ONE = 32  # a factor is counted in units of 2**-32


@dataclass(frozen=True)
class StalenessOptions:
    """Staleness: of models by time, of clients by compute events. Nothing of it counts with 0.

    What a model counts in an average halves with every `half_life` of its age: the time since it was pushed. One older
    than `oldest` is not merged. A client that has had `ahead` compute events more than the slowest of those online whom
    it could push to waits for that one before it begins its next.
    """

    half_life: PseudoTime = 0.0
    oldest: PseudoTime = 0.0
    ahead: int = 0

    def __post_init__(self) -> None:
        check_number("half_life", self.half_life)
        check_number("oldest", self.oldest)
        check_count("ahead", self.ahead)

    @property
    def given(self) -> tuple[str, float] | None:
        """The option by which age counts in an average; None if it does not."""
        return next(((key, value) for key in ("half_life", "oldest") if (value := getattr(self, key))), None)

    def weigh(self, weight: int, age: float) -> int:
        """Return what a model of some weight counts at some age; 0: it is not merged.

        >>> options = StalenessOptions(half_life=2.0, oldest=10.0)
        >>> [options.weigh(1 << 40, age) / (1 << 40) for age in (0, 2, 4, 10, 10.1)]
        [1.0, 0.5, 0.25, 0.03125, 0.0]
        """
        if self.oldest and age > self.oldest:
            return 0
        return weight * int(math.exp2(_ONE - age / self.half_life)) >> _ONE if self.half_life else weight

    def in_units(self, unit: float) -> "StalenessOptions":
        """Return the same with times in another unit, of which so many are one of these."""
        return replace(self, half_life=self.half_life * unit, oldest=self.oldest * unit)
