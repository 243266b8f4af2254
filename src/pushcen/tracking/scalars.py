"""What trackers can take of a row: single numbers by name, and a whole number for its time."""

import math
from collections.abc import Mapping
from typing import Any


def scalars(row: Mapping[str, Any], at: str = "") -> dict[str, float]:
    """Return the finite numbers of a row, those of inner tables as `table/name`; lists are left out.

    >>> scalars({"time": 2.0, "loss": None, "clients": [0.5, 0.7], "meters": {"mass": 1}})
    {'time': 2.0, 'meters/mass': 1.0}
    """
    found: dict[str, float] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            found |= scalars(value, f"{at}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            found[at + name] = float(value)
    return found


def step(row: Mapping[str, Any]) -> int:
    """Return a row's pseudo-time in thousandths: trackers want whole numbers, and methods are compared by time.

    >>> step({"time": 2.5})
    2500
    """
    return round(1000 * float(row["time"]))
