"""What a client's messages so far have left out of its models, and how later ones make up for it."""

import torch

from pushcen.learning.work import State
from pushcen.memory import zeros_apart

MOST_AGAIN = 4.0
"""By how much at most what was left out grows, if less mass is pushed than the last time and all of it is told."""
_FOLLOWS = 8  # the usual mass follows that of each push by an eighth


class Residual:
    """A row of numbers times a mass: what was left out. Where the mass of pushes is not known, the row alone.

    If a push of mass m tells w + x instead of w, and x' of that is left out, then e, what was left out so far, becomes
    e + m (x' - x). With `spread` = 0 all is told, x = e / m, but for x being bounded: what is beyond the bound is lost.
    Else x = e / max(m, spread M), where M is the mass that is usual for the client: nothing is lost, and what was left
    out of a heavy push is not told in a light one, where it would drown all else.

    >>> residual, owed = Residual(spread=2), 0.0
    >>> for mass in (400, 400, 10, 400):
    ...     told = residual.told(1, torch.device("cpu"), mass)
    ...     residual.note(torch.ones(1), mass)  # one is left out each time, whatever is told
    ...     owed += mass * (1 - float(told))
    ...     print(round(float(told), 2), round(owed), round(float(residual.row) * residual.mass))
    0.0 400 400
    0.5 600 600
    0.85 601 601
    0.84 665 665
    """

    def __init__(self, spread: int = 0) -> None:
        self.row: torch.Tensor | None = None
        self.mass = 0  # of the last push; with `spread`, the usual one
        self._spread = spread

    def told(self, size: int, device: torch.device, gives: int) -> torch.Tensor:
        """Return what is added to a model of so many numbers that is pushed with this mass, if that is known.

        With `spread`, a message that gives no mass tells nothing: it would be told again. Without, it is the row
        itself, which stays where it is in memory: what the push leaves out comes there.
        """
        if self.row is None or (self._spread and not gives):
            return zeros_apart(size, device)
        factor = self._factor(gives) if gives and self.mass else 1.0
        row = self.row.to(device)
        return row * factor if self._spread else row.mul_(factor)

    def note(self, left: torch.Tensor, gives: int) -> None:
        """Note what that push has left out of what it told."""
        if not gives:
            self.row = left
            return
        usual, per = self._usual(gives), self._per(gives)
        if self._spread and self.row is not None:  # e + m (left - e / per), as a row times the usual mass
            rest = self.row.to(left.device).mul_(self.mass * (per - gives) / per / usual)
            self.row = rest.add_(left, alpha=gives / usual)
        else:
            self.row = left
        self.mass = usual

    def _factor(self, gives: int) -> float:
        again = self.mass / self._per(gives)
        return again if self._spread else min(again, MOST_AGAIN)

    def _usual(self, gives: int) -> int:
        return self.mass + (gives - self.mass) // _FOLLOWS if self._spread and self.mass else gives

    def _per(self, gives: int) -> int:
        return max(gives, self._spread * self._usual(gives))

    def save(self) -> State:
        """Return the state that `restore` takes."""
        return State({} if self.row is None else {"left": self.row}, {"gave": self.mass} if self.mass else {})

    def restore(self, state: State) -> None:
        """Take over what `save` returned."""
        self.row = state.tensors["left"].clone() if "left" in state.tensors else None
        self.mass = state.plain.get("gave", 0)
