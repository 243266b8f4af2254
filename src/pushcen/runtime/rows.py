"""What a peer has measured, read out of `metrics.jsonl` by somebody who trusts nothing in it."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pushcen.measure import ACCURACY, Measure, read

NAME = "metrics.jsonl"
_TAIL = 8 << 20  # bytes at the end of a file that are read
_HUGE = 1e300
Row = dict[str, Any]


def rotate(path: Path, most: int = 16 << 20) -> None:
    """Begin a new file of measurements when one has become long; of the older ones, the last stays."""
    with contextlib.suppress(FileNotFoundError):
        if path.stat().st_size >= most:
            path.replace(older(path))


def older(path: Path) -> Path:
    """Return where the rows before those of a file are.

    >>> older(Path("state/metrics.jsonl")).name
    'metrics.1.jsonl'
    """
    return path.with_suffix(".1.jsonl")


def rows_of(folder: Path) -> Iterator[Row]:
    """Yield the last rows of a peer's measurements; what is no row is left out."""
    lines: list[bytes] = []
    for path in (older(folder / NAME), folder / NAME):
        with contextlib.suppress(OSError):
            if path.is_file():
                with path.open("rb") as file:
                    file.seek(max(0, path.stat().st_size - _TAIL))
                    lines += file.read(_TAIL).splitlines()
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
    before: list[float] = []
    for row in rows_of(folder):
        if (found := read(row)[0]) != measure:
            measure, values = found, []
        if _is_number(row.get(measure.name)):
            values.append(float(row[measure.name]))
            before = [row["best"]] if _is_number(row.get("best")) else []  # of rows that are not here any more
    last, best = (values[-1] if values else None), measure.best([*values, *before])
    unit = " %" if measure.percent else ""
    return {
        "metric": measure.name,
        "score": last,
        "best": best,
        "score_shown": measure.show(last) + unit,
        "best_shown": measure.show(best) + unit,
    }


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -_HUGE < value < _HUGE
