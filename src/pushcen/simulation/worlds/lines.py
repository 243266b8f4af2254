"""How fast and how late messages are between two clients, whatever the options say about it together."""

import math
from fractions import Fraction
from random import Random
from typing import TYPE_CHECKING

from pushcen.simulation.worlds.links import read_links
from pushcen.simulation.worlds.speeds import LOGNORMAL, DeviceLine, Speed, factors, read_lines, stragglers

if TYPE_CHECKING:
    from pushcen.simulation.options import NetworkOptions


class Lines:
    """A message leaves as fast as its sender's line lets it, and arrives as fast as the narrowest part of its way does.

    That is the sender's line, the receiver's, or the link between them. What is narrow further on keeps no other
    message of the sender waiting.

    >>> from pushcen.simulation.options import NetworkOptions
    >>> lines = Lines(NetworkOptions(bandwidth=100.0, stragglers=0.5, slowdown=5.0), clients=2, seed=0, time_unit=None)
    >>> lines.times(100, 0, 1, Random(0)), lines.times(100, 1, 0, Random(0))
    ((5.0, 0.0), (1.0, 4.0))
    """

    def __init__(self, options: "NetworkOptions", clients: int, seed: int, time_unit: Fraction | None) -> None:
        most = self._most = options.bandwidth or math.inf
        self._lines: list[DeviceLine] | None = None
        self._slower = stragglers(options.stragglers, options.slowdown, clients, seed, "network")
        self._links = read_links(options.links, clients, seed, time_unit) if options.links else None
        if options.speeds.startswith(LOGNORMAL):
            drawn = factors(options.speeds, clients, seed, "line")
            self._lines = [DeviceLine(Speed(most * factor), Speed(most * factor)) for factor in drawn]
            self._most = math.inf
        elif options.speeds:
            assert time_unit is not None, "the world has checked that"
            self._lines = read_lines(options.speeds, clients, seed, time_unit, options.speeds_unit)

    def up(self, sender: int, rng: Random) -> float:
        """Draw how many bytes leave a client in a unit of time; infinite: no limit."""
        own = self._most if self._lines is None else min(self._most, self._lines[sender].up.draw(rng))
        return own / self._slower[sender]

    def times(self, size: int, sender: int, receiver: int, rng: Random) -> tuple[float, float]:
        """Draw how long a message keeps its sender's line busy, and how long after that it is under way."""
        up = self.up(sender, rng)
        narrowest = min(up, self._down(receiver, rng))
        if self._links is not None:
            slower = max(self._slower[sender], self._slower[receiver])
            narrowest = min(narrowest, self._links.limit(sender, receiver) / slower)
        return size / up, size / narrowest - size / up + self.delay(sender, receiver)

    def delay(self, sender: int, receiver: int) -> float:
        """Return how late even a message of no bytes is, such as an answer."""
        return 0.0 if self._links is None else self._links.delay(sender, receiver)

    def _down(self, receiver: int, rng: Random) -> float:
        own = self._most if self._lines is None else min(self._most, self._lines[receiver].down.draw(rng))
        return own / self._slower[receiver]
