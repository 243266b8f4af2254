"""Figures over clients: mean, standard deviation, and the worst tenth."""

import math
from collections.abc import Sequence
from typing import Any

from pushcen.learning import Score, pooled
from pushcen.measure import ACCURACY, Measure


def of(
    found: Sequence[Score], prefix: str, measures: Sequence[Measure] = (ACCURACY,), *, pool: bool = False
) -> dict[str, Any]:
    """Return figures of several clients' scores. No test data does not count, nor what is not finite, which is told.

    With `pool`, metrics that are no mean over samples are also taken over all clients' outputs together.

    >>> of([Score(0.5, 1.0, 10), Score(1.0, 2.0, 10)], "")
    {'loss': 1.5, 'accuracy': 0.75, 'accuracy_sd': 0.25, 'accuracy_worst_tenth': 0.5}
    """
    found = [score for score in found if score.samples]
    row: dict[str, Any] = {f"{prefix}loss": mean([score.loss for score in found if math.isfinite(score.loss)])}
    for at, measure in enumerate(measures):
        name = f"{prefix}{measure.name}"
        values = [value for score in found if math.isfinite(value := score.values[at])]
        row |= {**spread(values, name), f"{name}_worst_tenth": mean(measure.worst_tenth(values))}
        if len(found) > len(values):
            row[f"{name}_left_out"] = len(found) - len(values)
        if pool and measure.pooled:
            row[f"{name}_pooled"] = pooled([tally for score in found if (tally := score.tallies[at]) is not None])
    return row


def spread(values: Sequence[float], name: str) -> dict[str, Any]:
    """Return mean and standard deviation over clients (of them all, not of a sample of them).

    >>> spread([], "best")
    {'best': None, 'best_sd': None}
    """
    average = mean(values)
    if average is None:
        return {name: None, f"{name}_sd": None}
    return {name: average, f"{name}_sd": math.sqrt(math.fsum((v - average) ** 2 for v in values) / len(values))}


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, whose rounding does not depend on the order; None of nothing.

    >>> mean([1e16, 1.0, -1e16])
    0.3333333333333333
    """
    return math.fsum(values) / len(values) if values else None


def finite(value: Any) -> Any:
    """Return a value with None in place of numbers that are not finite: JSON has none.

    >>> finite({"loss": float("nan"), "clients": {"3": 0.5}})
    {'loss': None, 'clients': {'3': 0.5}}
    """
    if isinstance(value, dict):
        return {name: finite(inner) for name, inner in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
