"""What becomes of a message between two clients, and when."""

from dataclasses import dataclass
from random import Random

from pushcen.checks import check_choice, check_number

NOTICES = ("sure", "doubt", "silent")


@dataclass(frozen=True)
class NetworkOptions:
    """How messages travel. As it stands, they arrive at once.

    A message takes `latency`, plus up to `jitter`, plus its bytes over `bandwidth` (bytes per unit of time, 0: no
    limit); a client sends one message after the other. A share `reorder` of the messages is held back by up to `hold`
    more, and a share `duplicate` arrives a second time, up to `hold` later. A share `loss` is lost. What the sender
    learns of that, or of a receiver that has gone offline, is `notice`:

    - `sure`: that nothing arrived. Its mass returns.
    - `doubt`: nothing. Answers get lost, too, with the same probability.
    - `silent`: there are no answers. The sender takes everything for delivered.
    """

    latency: float = 0.0
    jitter: float = 0.0
    bandwidth: float = 0.0
    loss: float = 0.0
    notice: str = "sure"
    duplicate: float = 0.0
    reorder: float = 0.0
    hold: float = 1.0

    def __post_init__(self) -> None:
        for name in ("latency", "jitter", "bandwidth"):
            check_number(f"network.{name}", getattr(self, name))
        check_number("network.hold", self.hold, above=True)
        for name in ("loss", "duplicate", "reorder"):
            check_number(f"network.{name}", getattr(self, name), 0, 1)
        check_choice("network.notice", self.notice, NOTICES)

    @property
    def instant(self) -> bool:
        """Whether every message that arrives does so at once, and only once."""
        return not (self.latency or self.jitter or self.bandwidth or self.duplicate or self.reorder)

    def way(self, rng: Random) -> float:
        """Draw the time that a message is under way, once it has left its sender."""
        time = self.latency + self.jitter * rng.random() if self.jitter else self.latency
        if self.reorder and rng.random() < self.reorder:
            time += self.hold * rng.random()
        return time
