"""What the page gets of run folders: everything so far, and then what is new, as plain values that were checked."""

import contextlib
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from pushcen.analysis.labels import labels
from pushcen.analysis.style import styles
from pushcen.checks import is_finite
from pushcen.errors import PushcenError, RunError
from pushcen.folder import CONFIG, METRICS, SUMMARY, Row, number, read_status
from pushcen.record import EVENTS, PEERS, RECORD, STATES, RecordTail
from pushcen.runs import Run
from pushcen.runs.run import folders_in
from pushcen.watch import lines
from pushcen.watch.peers import read_peers

Update = dict[str, Any]
"""`run` is its number; `anew`: forget what was told before. Then whatever is new: facts, rows, events, states."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,79}")
_FILES = (METRICS, SUMMARY, CONFIG, f"{RECORD}/{EVENTS}", f"{RECORD}/{STATES}")
_MOST_FIGURES = 300
_DASHES: dict[str, list[float]] = {"-": [], "--": [6, 3], "-.": [6, 2, 1.5, 2], ":": [1.5, 2]}


class _Stream:
    """One file of a record: its head, and then its lines, all checked."""

    def __init__(self, file: Path, head: Callable[[Any], Any], line: Callable[[Any, Any, float], Any]) -> None:
        self._file, self._check_head, self._check = file, head, line
        self.tail = RecordTail(file)
        self.head: dict[str, Any] | None = None
        self._time, self._number = 0.0, 0

    def more(self) -> tuple[bool, list[Any]]:
        anew, found = self.tail.more()
        if anew:
            self.head, self._time, self._number = None, 0.0, 0
        return anew, [checked for line in found if (checked := self._checked(line)) is not None]

    def _checked(self, line: Any) -> Any:
        self._number += 1
        try:
            if self.head is None:
                self.head = self._check_head(line)
                return None
            checked = self._check(line, self.head, self._time)
        except lines.LineError as error:
            raise RunError(f"{self._file}, line {self._number}: {error}") from None
        self._time = checked["t"] if isinstance(checked, dict) else checked[1]
        return checked


class WatchedRun:
    """One run's folder, perhaps still growing. `error` says why it cannot be read, until one of its files changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = Run.open(folder)
        self.error = ""
        self._again()

    def _again(self) -> None:
        self._events = _Stream(self.folder / RECORD / EVENTS, lines.events_head, lines.event)
        self._states = _Stream(self.folder / RECORD / STATES, lines.states_head, lines.state)
        self._rows = 0
        self._last: tuple[Row, ...] = ()
        self._seen: list[Any] = []
        self._damaged: list[Any] = []
        self._told: dict[str, Any] = {}

    def more(self) -> Update:
        """Return what is new; empty if nothing is."""
        now = [_stamp(self.folder / name) for name in _FILES]
        before, self.error = self.error, ""
        if before and now == self._damaged:
            self.error = before
            return {}
        try:
            if not before:
                return self._read(now[:3])
            self._again()
            return {"anew": True, **self._read(now[:3])}
        except (PushcenError, OSError) as error:
            self.error, self._damaged = str(error), now
            return {"facts": {"name": _name(self.folder), "error": str(error)[:500]}}

    def _read(self, seen: list[Any]) -> Update:
        update: Update = {}
        if seen != self._seen:
            self.run, self._seen = Run.open(self.folder), seen
            if self.run.rows[self._rows - 1 : self._rows] != self._last:  # cut back, or written anew
                self._again()
                self._seen = seen
                update["anew"] = True
            update["rows"] = [_figures(row) for row in self.run.rows[self._rows :]]
            if wrong := [row["time"] for row in update["rows"] if not 0 <= row["time"] <= lines.SAFE]:
                raise RunError(f"{self.folder / METRICS}: time = {wrong[0]:g}: is not what a run has there")
            self._rows, self._last = len(self.run.rows), self.run.rows[-1:]
        for name, stream in (("events", self._events), ("states", self._states)):
            anew, found = stream.more()
            if anew:
                self._again()
                return {"anew": True, **self._read(seen)}
            if found:
                update[name] = found
        facts = self._facts() | read_peers(self.folder / RECORD / PEERS)
        if facts != self._told:
            update["facts"], self._told = facts, facts
        return {name: value for name, value in update.items() if value}

    def _facts(self) -> dict[str, Any]:
        measure, status = self.run.measure, read_status(self.folder)
        times = (self.run.summary or {}).get("times")
        rows = times.get("rows") if isinstance(times, dict) else None
        whole = isinstance(rows, list) and all(is_finite(one) for one in rows)
        return {
            "name": _name(self.folder),
            "method": self.run.method[:80],
            "status": "finished" if self.run.finished else status,
            "measure": {
                "name": measure.name,
                "title": measure.title,
                "percent": measure.percent,
                "higher": measure.higher_is_better,
            },
            "head": self._events.head,
            "full": self._events.tail.full or self._states.tail.full,
            "seconds": rows if whole and rows is not None and len(rows) == len(self.run.rows) else None,
        }


class Watch:
    """Several runs: folders of runs, or folders in which runs are or will be."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._runs: list[WatchedRun] = []
        self._looks: list[Update] = []
        self._configs: list[Any] = []

    def more(self) -> list[Update]:
        """Return what is new of each run, those that have appeared since included; nothing new: an empty list."""
        self._find()
        updates = [{"run": at, **run.more()} for at, run in enumerate(self._runs)]
        looks = self._looks_now()
        for at, look in enumerate(looks):
            if look not in self._looks[at : at + 1]:
                updates[at]["look"] = look
        self._looks = looks
        return [update for update in updates if len(update) > 1]

    def whole(self) -> list[Update]:
        """Return everything of every run, in one update each; refuse what cannot be read."""
        found: dict[int, Update] = {}
        while updates := self.more():
            for update in updates:
                into = found.setdefault(update["run"], {"run": update["run"]})
                for name, value in update.items():
                    into[name] = [*into.get(name, []), *value] if isinstance(value, list) else value
        if error := next((run.error for run in self._runs if run.error), ""):
            raise RunError(error)
        if not found:
            raise RunError(f"{', '.join(map(str, self._folders))}: no run is there")
        return list(found.values())

    def _find(self) -> None:
        known = {run.folder for run in self._runs}
        for folder in _runs_in(self._folders):
            if folder not in known:
                with contextlib.suppress(PushcenError, OSError):  # perhaps later
                    self._runs.append(WatchedRun(folder))

    def _looks_now(self) -> list[Update]:
        """Return what each run is called and how its curves look, which depends on the others."""
        methods = [run.run.method for run in self._runs]
        configs = [run.run.config for run in self._runs]
        if configs == self._configs:
            return self._looks
        self._configs, named = configs, labels(methods, [run.run.identity() for run in self._runs])
        return [
            {"label": label[:120], "colour": style.colour, "dash": _dash(style.line), "marker": style.marker}
            for label, style in zip(self._told_apart(named), styles(methods), strict=True)
        ]

    def _told_apart(self, labels: Sequence[str]) -> list[str]:
        """Add the folder's name to what several runs are called."""
        names = (run.folder.resolve().name for run in self._runs)
        return [
            f"{label}, {name}" if labels.count(label) > 1 else label for label, name in zip(labels, names, strict=True)
        ]


def _runs_in(folders: Iterable[Path]) -> list[Path]:
    found = [[folder] if (folder / CONFIG).is_file() else folders_in(folder) for folder in folders]
    return list(dict.fromkeys(run for several in found for run in several))


def _name(folder: Path) -> str:
    """Return what to call a folder: not where it is on this machine."""
    return "/".join(folder.parts[-2:])[-200:]


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        facts = file.stat()
    except OSError:
        return None
    return facts.st_size, facts.st_mtime_ns


def _figures(row: Row) -> dict[str, float]:
    """Return the finite figures of a row, but for those of single clients."""
    named = {name: value for name in row if _NAME.fullmatch(name) and (value := number(row, name)) is not None}
    known = {name: value for name, value in named.items() if abs(value) <= lines.HUGE}
    return {"time": named["time"], **dict(list(known.items())[:_MOST_FIGURES])}


def _dash(line: Any) -> list[float]:
    return _DASHES[line] if isinstance(line, str) else [1.6 * part for part in line[1]]
