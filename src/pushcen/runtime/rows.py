"""What a peer has measured, read out of `metrics.jsonl` by somebody who trusts nothing in it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pushcen.measure import ACCURACY, Measure, read

NAME = "metrics.jsonl"
_TAIL = 8 << 20  # bytes at its end that are read
_HUGE = 1e300
Row = dict[str, Any]


def rows_of(folder: Path) -> Iterator[Row]:
    """Yield the last rows of a peer's measurements; what is no row is left out."""
    path = folder / NAME
    if not path.is_file():
        return
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL))
            lines = file.read(_TAIL).splitlines()
    except OSError:
        return
    for line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue  # cut off, by a kill or by us
        if isinstance(row, dict):
            yield row


def scores(folder: Path) -> dict[str, Any]:
    """Return what a peer's first metric is called, its last value and its best, and how they are shown."""
    measure: Measure = ACCURACY
    values: list[float] = []
    for row in rows_of(folder):
        if (found := read(row)[0]) != measure:
            measure, values = found, []
        value: Any = row.get(measure.name)
        if type(value) in (int, float) and -_HUGE < value < _HUGE:
            values.append(float(value))
    last, best = (values[-1] if values else None), measure.best(values)
    unit = " %" if measure.percent else ""
    return {
        "metric": measure.name,
        "score": last,
        "best": best,
        "score_shown": measure.show(last) + unit,
        "best_shown": measure.show(best) + unit,
    }
