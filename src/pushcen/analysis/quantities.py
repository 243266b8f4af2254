"""Any figure of a run that a table may be about: what it is called, how it is shown, and which way is better."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pushcen.analysis.units import flops, number, size
from pushcen.errors import OptionError
from pushcen.measure import ACCURACY, Measure
from pushcen.runs import Run

_PARTS = ("_sd", "_worst_tenth", "_pooled")  # what rows have of a metric, beside its mean
_COSTS = ("loss", "bytes_sent", "bytes_per_push", "flops", "times.run")


@dataclass(frozen=True)
class Quantity:
    """A figure of runs by its name in their rows; `higher_is_better` is None where neither way is better.

    >>> rmse = Quantity("rmse", Measure("rmse", higher_is_better=False), higher_is_better=False)
    >>> rmse.heading, rmse.spread(0.12345, 0.00123), rmse.show(-0.5, "+")
    ('RMSE, lower is better', '0.1235 ± 0.0012', '-0.5')
    >>> Quantity("bytes_sent", None, higher_is_better=False).spread(2.29e9, 1.2e7)
    '2.29 GB ± 12 MB'
    """

    name: str
    measure: Measure | None
    """The metric that it is, or is made of."""
    higher_is_better: bool | None

    @property
    def heading(self) -> str:
        """The title of a column."""
        if self.measure and self.name == self.measure.name:
            return self.measure.heading
        return self.name.replace("_", " ") + (" %" if self.measure and self.measure.percent else "")

    def show(self, value: float | None, sign: str = "") -> str:
        """Return a value as people read it; a `sign` of "+" shows one for all values."""
        if self.measure or value is None:
            return (self.measure or ACCURACY).show(value, sign)
        form = size if "bytes" in self.name else flops if self.name == "flops" else number
        return (sign if value >= 0 else "") + form(value)

    def spread(self, mean: float, sd: float | None) -> str:
        """Return a mean and its standard deviation, if there is one, both with as many digits."""
        if sd is None:
            return self.show(mean)
        if self.measure and not self.measure.percent and sd > 0:
            places = min(max(1 - math.floor(math.log10(sd)), 0), 9)
            return f"{mean:.{places}f} ± {sd:.{places}f}"
        return f"{self.show(mean)} ± {self.show(sd)}"


def quantity(runs: Sequence[Run], name: str = "") -> Quantity:
    """Return the figure of this name; without one, what the runs are measured by. One that no run has is refused."""
    measures = {measure.name: measure for run in runs for measure in run.measures}
    name = name or next(iter(measures), ACCURACY.name)
    if not any(run.number(name) is not None for run in runs):
        known = sorted({key for run in runs for key in run.last if run.number(key) is not None} - {"time"})
        raise OptionError(f"figure = {name!r}: no run has it; they have {', '.join(known) or 'none at all'}")
    core = name.removeprefix("delayed_")
    part = next((part for part in _PARTS if core.endswith(part)), "")
    core = core.removesuffix(part)
    measure = measures.get(name) or measures.get(core) or (next(iter(measures.values())) if core == "best" else None)
    if measure is not None:
        return Quantity(name, measure, False if part == "_sd" else measure.higher_is_better)
    return Quantity(name, None, False if name in _COSTS or name.endswith("_loss") else None)
