"""A learner with nothing to learn: for measuring all that a simulation does beside learning."""

from typing import Any

from pushcen.codec import Schema
from pushcen.learning import Outcome, Score, Task, Work


class Trivial:
    """Merges nothing, trains nothing, sends nothing; and says so at once."""

    task = Task(None, ((), ()))  # type: ignore[arg-type]
    schema = Schema(())
    steps = 10
    _outcome = Outcome({}, loss=0.0, steps=10, samples=0, flops=0.0, density=1.0)

    def __init__(self, client: int) -> None:
        self.client = client

    @property
    def frozen(self) -> "Trivial":
        """Nothing is frozen."""
        return self

    def fingerprints(self) -> dict[str, str]:
        """Say that nothing is frozen."""
        return {}

    def sizes(self) -> dict[int, int]:
        """Say that a message has 100 bytes."""
        return {0: 100}

    def fold(self, weight: int, part: int, payloads: Any) -> None:
        """Merge nothing early."""

    def take(self) -> None:
        """Take nothing."""

    def put_back(self) -> None:
        """Put nothing back."""

    def step(self, work: Work, *, encode: bool = True, measure: bool = False) -> Outcome:  # noqa: ARG002
        """Do nothing."""
        return self._outcome

    def encode(self) -> dict[int, Any]:
        """Encode nothing."""
        return {}

    def evaluate(self, samples: Any = None) -> Score:  # noqa: ARG002
        """Score nothing."""
        return Score(0.0, 0.0, 0)
