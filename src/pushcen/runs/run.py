"""A run folder as it is found: perhaps still running, perhaps damaged, perhaps from somebody else."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pushcen.config import Config
from pushcen.errors import PushcenError, RunError
from pushcen.folder import CONFIG, REAL, Row, number, read_config, read_rows, read_summary
from pushcen.measure import Measure, read
from pushcen.simulation.options.identity import Identity

if TYPE_CHECKING:
    import pandas as pd


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
        """Return the run in a folder, or raise a RunError. A last line that is still being written is left out."""
        folder = Path(folder)
        return cls(folder, read_config(folder), tuple(read_rows(folder)), read_summary(folder))

    def identity(self) -> Identity:
        """Return every option that its results depend on: runs with equal identities are the same run."""
        return _identity(self.config, self.summary)

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

    @property
    def measures(self) -> list[Measure]:
        """What it is measured by, as its rows say: accuracy, unless they name something else."""
        return read(self.last or self.summary)

    @property
    def measure(self) -> Measure:
        """The first of them, which tables and figures show.

        >>> Run(Path("x"), {}, ({"time": 1.0, "metric": {"name": "rmse", "higher_is_better": False}},), None).measure
        Measure(name='rmse', higher_is_better=False, percent=False, pooled=False)
        """
        return self.measures[0]

    def number(self, name: str) -> float | None:
        """Return a figure of the newest row, or else of the summary; `meters.mass.exact` goes inside.

        >>> Run(Path("x"), {}, ({"time": 1.0, "accuracy": 0.5},), None).number("accuracy")
        0.5
        """
        return number(self.last, name) if number(self.last, name) is not None else number(self.summary, name)

    def series(self, name: str) -> tuple[list[float], list[float]]:
        """Return the times at which a figure was measured, and its values.

        >>> Run(Path("x"), {}, ({"time": 0.0, "loss": None}, {"time": 1.0, "loss": 2.0}), None).series("loss")
        ([1.0], [2.0])
        """
        pairs = [(row["time"], value) for row in self.rows if (value := number(row, name)) is not None]
        return [time for time, _ in pairs], [value for _, value in pairs]

    def client_series(self, client: int) -> tuple[list[float], list[float]]:
        """Return the times at which one client was online and measured, and its accuracy or other metric."""
        found: tuple[list[float], list[float]] = ([], [])
        for row in self.rows:
            if (value := number(row, f"clients.{client}")) is not None:
                found[0].append(row["time"])
                found[1].append(value)
        return found

    def joins(self) -> dict[int, float]:
        """Return the clients that join late, and when, as the config says; none if it does not say."""
        from pushcen.simulation import ParticipationOptions

        try:
            section = ParticipationOptions(**self.config.get("participation", {}))
            return section.join_times(self.config["clients"], self.config["seed"])
        except (PushcenError, TypeError, KeyError, ValueError, OverflowError):
            return {}

    def frame(self) -> "pd.DataFrame":
        """Return the metrics as a data frame, a row for each evaluation; single clients are left out."""
        import pandas as pd

        return pd.DataFrame([dict(_scalars(row)) for row in self.rows])

    def client_frame(self) -> "pd.DataFrame":
        """Return the accuracy (or first metric) of each client as a data frame: times down, clients across."""
        import pandas as pd

        values = [row["clients"] if isinstance(row.get("clients"), dict) else {} for row in self.rows]
        index = pd.Index([row["time"] for row in self.rows], name="time")
        columns = sorted({int(name) for row in values for name in row if name.isdigit()})
        data = [[row.get(str(client)) for client in columns] for row in values]
        return pd.DataFrame(data, index=index, columns=pd.Index(columns, name="client"), dtype="float64")


def identity_in(folder: Path) -> Identity:
    """Return the identity of the run in a folder, without reading its metrics."""
    return _identity(read_config(folder), read_summary(folder))


def find_runs(folders: Iterable[Path]) -> list[Run]:
    """Return runs: each folder is one, or holds some (at most two folders deep), oldest first.

    >>> find_runs([Path("no/such")])
    Traceback (most recent call last):
    pushcen.errors.RunError: no/such: no such folder
    """
    runs: dict[Path, Run] = {}
    for folder in folders:
        found = [folder] if (folder / CONFIG).is_file() else folders_in(folder)
        if not found:
            raise RunError(f"{folder}: no such folder" if not folder.is_dir() else f"{folder}: holds no run")
        runs |= {path.resolve(): Run.open(path) for path in found}
    return list(runs.values())


def folders_in(folder: Path) -> list[Path]:
    """Return the folders of runs in a folder, at most two folders deep, oldest first."""
    found = [file for pattern in (f"*/{CONFIG}", f"*/*/{CONFIG}") for file in folder.glob(pattern)]
    return [file.parent for file in sorted(found, key=lambda file: (file.stat().st_mtime_ns, file))]


def _identity(config: Mapping[str, Any], summary: Row | None) -> Identity:
    return Config.identity_of(config, real=(summary or {}).get("world") == REAL)


def _scalars(row: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, Mapping) and name not in ("clients", "metric"):
            yield from _scalars(value, f"{at}{name}.")
        elif not isinstance(value, list | Mapping):
            yield at + name, value
