"""How long a compute event lasts, in pseudo-time."""

from dataclasses import dataclass
from random import Random

from pushcen.checks import check_choice, check_number
from pushcen.errors import OptionError
from pushcen.streams import stream

KINDS = ("steps", "constant", "classes", "heavy")


@dataclass(frozen=True)
class ComputeOptions:
    """The time of a compute event, by `kind`.

    - `steps`: the event's optimiser steps times `per_step` (the paper: 0.1).
    - `constant`: `per_event`, whatever there is to do.
    - `classes`: like `steps`, times the factor of the client's speed class, which is drawn once from `classes`.
    - `heavy`: like `steps`, times a factor of 1 or more drawn for each event: Pareto, with `tail` as its exponent.
    """

    kind: str = "steps"
    per_step: float = 0.1
    per_event: float = 1.0
    classes: tuple[float, ...] = (1.0, 2.0, 4.0)
    tail: float = 2.0

    def __post_init__(self) -> None:
        check_choice("compute.kind", self.kind, KINDS)
        check_number("compute.per_step", self.per_step, above=True)
        check_number("compute.per_event", self.per_event, above=True)
        if not self.classes:
            raise OptionError("compute.classes = []: must have at least one factor")
        for factor in self.classes:
            check_number("compute.classes", factor, above=True)
        check_number("compute.tail", self.tail, above=True)

    def pace(self, client: int, steps: int, seed: int) -> float:
        """Give a client's usual time for one event: all of it, but for the factor of `heavy`.

        >>> round(ComputeOptions().pace(client=0, steps=12, seed=0), 9)
        1.2
        """
        if self.kind == "constant":
            return self.per_event
        factor = stream(seed, "speed", client).choice(self.classes) if self.kind == "classes" else 1.0
        return steps * self.per_step * factor

    def time(self, pace: float, rng: Random) -> float:
        """Give the time of one event of a client with this pace; `rng` is the client's own, for this alone."""
        return pace * rng.paretovariate(self.tail) if self.kind == "heavy" else pace
