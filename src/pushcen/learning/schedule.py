"""How the learning rate goes over a client's own events or steps."""

import math
from dataclasses import dataclass

from pushcen.checks import check_choice, check_count, check_number, check_order
from pushcen.errors import OptionError

_READS = {"constant": (), "cosine": ("over", "floor"), "step": ("every", "factor")}


@dataclass(frozen=True, slots=True)
class ScheduleOptions:
    """What the learning rate is multiplied by, by `kind`; it counts a client's own events, or its optimiser steps.

    - `constant`: 1.
    - `cosine`: from 1 down to `floor`, which it reaches after `over` events and keeps from there on.
    - `step`: `factor` once more after `every` so many events.

    Before all that comes a linear `warm_up` of so many events, which belong to `over`.

    >>> [round(ScheduleOptions("cosine", over=4, floor=0.0).rate(event, 0, 9), 3) for event in (1, 2, 3, 4, 5, 9)]
    [1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """

    kind: str = "constant"
    unit: str = "events"
    """events or steps: what all the numbers below count."""
    warm_up: int = 0
    over: int = 0
    """For cosine."""
    floor: float = 0.01
    """For cosine: the share of the learning rate that stays."""
    every: int = 0
    """For step."""
    factor: float = 0.1
    """For step."""

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, tuple(_READS))
        check_choice("unit", self.unit, ("events", "steps"))
        for name in ("warm_up", "over", "every"):
            check_count(name, getattr(self, name))
        check_number("floor", self.floor, 0, 1)
        check_number("factor", self.factor, 0, 1, above=True)
        default = {"over": 0, "floor": 0.01, "every": 0, "factor": 0.1}
        for name, usual in default.items():
            if name not in _READS[self.kind] and (value := getattr(self, name)) != usual:
                kind = next(kind for kind, reads in _READS.items() if name in reads)
                raise OptionError(f"{name} = {value!r}: is for kind {kind}, and not read by {self.kind}")
        if self.kind == "cosine":
            check_count("over", self.over, 1)
            check_order("warm_up", self.warm_up, "over", self.over)
        if self.kind == "step":
            check_count("every", self.every, 1)

    @property
    def flat(self) -> bool:
        """Whether the learning rate never changes."""
        return self.kind == "constant" and not self.warm_up

    def rate(self, event: int, step: int, steps: int) -> float:
        """Return the factor for a step of an event: events count from 1, steps from 0; an event has `steps` of them.

        >>> [ScheduleOptions(warm_up=4, unit="steps").rate(1, step, 8) for step in range(6)]
        [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
        >>> [ScheduleOptions("step", every=2, factor=0.5).rate(event, 0, 8) for event in (1, 2, 3, 4, 5)]
        [1.0, 1.0, 0.5, 0.5, 0.25]
        """
        count = event - 1 if self.unit == "events" else (event - 1) * steps + min(step, steps - 1)
        if count < self.warm_up:
            return (count + 1) / self.warm_up
        count -= self.warm_up
        if self.kind == "step":
            return float(self.factor ** (count // self.every))
        if self.kind == "cosine":
            share = min(count / max(self.over - self.warm_up, 1), 1.0)
            return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * share)) / 2
        return 1.0
