"""How a peer's own score has gone: its best weights, kept beside the newest, and whether it has trained enough.

The best weights are links to files that commits wrote, `best.7.safetensors` after seven events; the ledger names them.
What is there and not named is from a commit that never was, and is removed.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pushcen.errors import LedgerError
from pushcen.measure import Measure
from pushcen.runtime.health import span
from pushcen.runtime.options import RuntimeOptions
from pushcen.runtime.state_folder import File

BEST = "best.{}.safetensors"
"""The file of weights after so many events."""
KEY = "track"
"""The ledger's key."""


class Kept(NamedTuple):
    """Weights that were among the best: their score, after how many events, and the file."""

    score: float
    events: int
    file: File


@dataclass
class Track:
    """What is known of a peer's scores. `begun` is when its first compute event was finished, by the wall clock."""

    begun: float = 0.0
    best: float | None = None
    best_at: int = 0
    """After how many events that was."""
    held: int = 0
    """How many evaluations in a row have reached the target."""
    kept: list[Kept] = field(default_factory=list)
    """The best, the best of all first."""

    @classmethod
    def of(cls, plain: Any) -> "Track":
        """Read what a ledger has; refuse what is none.

        >>> Track.of(None) == Track.of(Track().plain()) == Track()
        True
        >>> Track.of({"best": "high"})
        Traceback (most recent call last):
        pushcen.errors.LedgerError: `track` of the ledger is damaged: best = 'high'
        """
        if plain is None:
            return cls()
        try:
            best = plain["best"]
            if not isinstance(best, int | float | None):
                raise ValueError(f"best = {best!r:.40}")
            kept = [
                Kept(float(score), int(events), File(Path(name).name, int(size), str(digest)))
                for score, events, (name, size, digest) in plain["kept"]
            ]
            return cls(float(plain["begun"]), best, int(plain["best_at"]), int(plain["held"]), kept)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise LedgerError(f"`track` of the ledger is damaged: {error}") from error

    def plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        kept = [[one.score, one.events, list(one.file)] for one in self.kept]
        return {"begun": self.begun, "best": self.best, "best_at": self.best_at, "held": self.held, "kept": kept}

    def note(self, score: float | None, events: int, measure: Measure, stop_at: float | None, now: float) -> bool:
        """Note a compute event, and what it was evaluated to; return whether that is the best up to now."""
        self.begun = self.begun or now
        if score is None or score != score:
            return False
        wanted = None if stop_at is None else stop_at / measure.scale
        self.held = self.held + 1 if wanted is not None and not measure.better(wanted, score) else 0
        if self.best is not None and not measure.better(score, self.best):
            return False
        self.best, self.best_at = score, events
        return True

    def enough(self, options: RuntimeOptions, measure: Measure, events: int, now: float) -> str:
        """Return why this peer has trained enough; empty if it has not.

        >>> track = Track(begun=100.0, best=0.9, best_at=20)
        >>> track.enough(RuntimeOptions(stop_without_gain=50), Measure("accuracy", percent=True), 70, now=200.0)
        'accuracy 90.0 % was not bettered for 50 events'
        >>> track.enough(RuntimeOptions(stop_after=50.0), Measure("accuracy", percent=True), 70, now=200.0)
        'it has trained for 2 min, and was to for 50 s'
        """
        if options.stop_after and self.begun and now - self.begun >= options.stop_after:
            return f"it has trained for {span(now - self.begun)}, and was to for {span(options.stop_after)}"
        if options.stop_at is not None and self.held > 1:
            return f"{measure.title} has reached {options.stop_at:g} at two evaluations in a row"
        if options.stop_without_gain and self.best_at and events - self.best_at >= options.stop_without_gain:
            return f"{measure.says(self.best)} was not bettered for {events - self.best_at} events"
        return ""


class Checkpoints:
    """The track of a running peer, and its files."""

    def __init__(self, folder: Path, measure: Measure, options: RuntimeOptions, saved: Any) -> None:
        self._folder, self._measure, self._options = folder, measure, options
        self.track = Track.of(saved)
        if options.stop_at is not None:
            measure.check_target(options.stop_at, "runtime.stop_at")

    def note(self, score: float | None, events: int, weights: File, clock: Callable[[], float] = time.time) -> None:
        """Note a compute event whose weights are in a file; keep them, if they are among the best."""
        track = self.track
        track.note(score, events, self._measure, self._options.stop_at, clock())
        if score is None or score != score or not self._options.keep_best:
            return
        better = sum(not self._measure.better(score, one.score) for one in track.kept)
        if better < self._options.keep_best:
            file = File(BEST.format(events), weights.size, weights.digest)
            _link(self._folder / weights.name, self._folder / file.name)
            others = [one for one in track.kept if one.events != events]
            track.kept = [*others[:better], Kept(score, events, file), *others[better:]][: self._options.keep_best]

    def tidy(self) -> None:
        """Remove what is not among the best any more."""
        names = {one.file.name for one in self.track.kept}
        with contextlib.suppress(OSError):
            for path in self._folder.glob(BEST.format("*")):
                if path.name not in names:
                    path.unlink(missing_ok=True)

    def enough(self, events: int, most: int | None, now: float) -> str:
        """Return why training ends, if it does: by the number of compute events, or by another rule."""
        if most is not None and events >= most:
            return f"it has had {events} compute events"
        return self.track.enough(self._options, self._measure, events, now)


def _link(source: Path, target: Path) -> None:
    """Let a file be there under another name, too; where the disk cannot do that, copy it."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
