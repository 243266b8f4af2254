"""A run folder as it is found: perhaps still running, perhaps damaged, perhaps from somebody else."""

import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pushcen.errors import PushcenError, RunError

if TYPE_CHECKING:
    import pandas as pd

CONFIG, METRICS, SUMMARY = "config.toml", "metrics.jsonl", "summary.json"
_LARGEST = {CONFIG: 1 << 20, METRICS: 1 << 31, SUMMARY: 1 << 28}  # bytes; more is no run of ours
_LONGEST_LINE = 1 << 26
Row = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """What a run wrote. `Run.open` reads and checks it; nothing in it is trusted to be there or to be right.

    >>> Run.open("no/such/run")
    Traceback (most recent call last):
    pushcen.errors.RunError: no/such/run: no such folder
    """

    folder: Path
    config: dict[str, Any]
    rows: tuple[Row, ...]
    summary: dict[str, Any] | None

    @classmethod
    def open(cls, folder: str | Path) -> "Run":
        """Read a run folder, or say what is wrong with it. A last line that is still being written is left out."""
        folder = Path(folder)
        if not folder.is_dir():
            raise RunError(f"{folder}: no such folder" if not folder.exists() else f"{folder}: is a file, not a run")
        if not (folder / CONFIG).is_file():
            raise RunError(f"{folder}: is not a run: it has no {CONFIG}")
        try:
            config = tomllib.loads(_text(folder / CONFIG))
        except tomllib.TOMLDecodeError as error:
            raise RunError(f"{folder / CONFIG}: {error}") from None
        return cls(folder, config, tuple(_rows(folder / METRICS)), _summary(folder / SUMMARY))

    @property
    def finished(self) -> bool:
        """Whether it came to its end."""
        return self.summary is not None

    @property
    def method(self) -> str:
        """The name of its method."""
        method = self.config.get("method")
        name = method.get("name") if isinstance(method, Mapping) else method
        return name if isinstance(name, str) else "unknown"

    @property
    def last(self) -> Row:
        """The newest row of the metrics, if there is one."""
        return self.rows[-1] if self.rows else {}

    def number(self, name: str) -> float | None:
        """Return a figure of the newest row, or else of the summary; `meters.mass.exact` goes inside.

        >>> Run(Path("x"), {}, ({"time": 1.0, "accuracy": 0.5},), None).number("accuracy")
        0.5
        """
        return _number(self.last, name) if _number(self.last, name) is not None else _number(self.summary, name)

    def series(self, name: str) -> tuple[list[float], list[float]]:
        """Return the times at which a figure was measured, and its values.

        >>> Run(Path("x"), {}, ({"time": 0.0, "loss": None}, {"time": 1.0, "loss": 2.0}), None).series("loss")
        ([1.0], [2.0])
        """
        pairs = [(row["time"], value) for row in self.rows if (value := _number(row, name)) is not None]
        return [time for time, _ in pairs], [value for _, value in pairs]

    def client_series(self, client: int) -> tuple[list[float], list[float]]:
        """Return the times at which one client was online and measured, and its accuracy."""
        found: tuple[list[float], list[float]] = ([], [])
        for row in self.rows:
            if (value := _number(row, f"clients.{client}")) is not None:
                found[0].append(row["time"])
                found[1].append(value)
        return found

    def joins(self) -> dict[int, float]:
        """Return the clients that join late, and when, as the config says; none if it does not say."""
        from pushcen.simulation import Participation

        try:
            section = Participation(**self.config.get("participation", {}))
            return section.join_times(self.config["clients"], self.config["seed"])
        except (PushcenError, TypeError, KeyError, ValueError, OverflowError):
            return {}

    def frame(self) -> "pd.DataFrame":
        """Return the metrics as a data frame, a row for each evaluation; single clients are left out."""
        import pandas as pd

        return pd.DataFrame([dict(_scalars(row)) for row in self.rows])

    def client_frame(self) -> "pd.DataFrame":
        """Return the accuracy of each client as a data frame: times down, clients across."""
        import pandas as pd

        values = [row["clients"] if isinstance(row.get("clients"), dict) else {} for row in self.rows]
        index = pd.Index([row["time"] for row in self.rows], name="time")
        columns = sorted({int(name) for row in values for name in row if name.isdigit()})
        data = [[row.get(str(client)) for client in columns] for row in values]
        return pd.DataFrame(data, index=index, columns=pd.Index(columns, name="client"), dtype="float64")


def _text(file: Path) -> str:
    if file.stat().st_size > _LARGEST[file.name]:
        raise RunError(f"{file}: has {file.stat().st_size:,} bytes, over {_LARGEST[file.name]:,}")
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise RunError(f"{file}: is not text: {error}") from None


def _rows(file: Path) -> Iterator[Row]:
    if not file.is_file():
        return
    time = -math.inf
    lines = _text(file).split("\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            row: Any = json.loads(line, parse_constant=lambda _: None) if len(line) < _LONGEST_LINE else None
        except (ValueError, RecursionError):
            if number == len(lines):  # no newline after it: it is being written
                return
            raise RunError(f"{file}, line {number}: is not JSON") from None
        at = row.get("time") if isinstance(row, dict) else None
        if not isinstance(at, int | float) or isinstance(at, bool) or not time <= at < math.inf:
            raise RunError(f"{file}, line {number}: must be an object with a time that does not fall")
        time = at
        yield row


def _summary(file: Path) -> dict[str, Any] | None:
    if not file.is_file():
        return None
    try:
        summary = json.loads(_text(file), parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{file}: is not JSON: {error}") from None
    if not isinstance(summary, dict):
        raise RunError(f"{file}: must be a JSON object")
    return summary


def _number(values: Any, name: str) -> float | None:
    for part in name.split("."):
        values = values.get(part) if isinstance(values, Mapping) else None
    if isinstance(values, bool) or not isinstance(values, int | float) or not math.isfinite(values):
        return None
    return float(values)


def _scalars(row: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, Mapping) and name != "clients":
            yield from _scalars(value, f"{at}{name}.")
        elif not isinstance(value, list | Mapping):
            yield at + name, value
