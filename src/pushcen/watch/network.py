"""A real network as a run's folder: what peers say of themselves becomes a record, which the page shows as any other.

Peers are numbered in the order in which they are heard of. Times are in seconds, by the clock of who watches: whatever
a peer's own clock says, nothing happens later than now, and nothing earlier than what was told before.
"""

import json
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pushcen.files import write_whole
from pushcen.folder import CONFIG, METRICS, Folder, as_json
from pushcen.measure import Measure, written
from pushcen.record import ANSWERS, EVENTS, PEERS, RECORD, SILENT, STATES, VERSION, VISITS, RecordFile
from pushcen.runtime.facts import Fact
from pushcen.runtime.health import problems
from pushcen.runtime.looking import PeerView
from pushcen.runtime.network import NAME
from pushcen.runtime.run import figures
from pushcen.watch.lines import BORN, MOST_PEERS, SAFE

KEPT = 20_000
"""Events, states or rows that are in the record at least; of twice as many the older half goes."""
_OLDEST = 30 * 86_400.0  # seconds before now that a fact may be said to be from
_JUMP = 2.0  # seconds by which a clock must differ from what it was to be asked anew
_ARRIVED = ("news", "old")  # what becomes of a push that has arrived
_SAY_AGAIN = 10.0  # seconds after which a state is written though nothing has changed
Answer = PeerView | str


class NetworkRecord:
    """Writes what the peers at some addresses say, round by round, into a folder."""

    def __init__(self, folder: Path, names: Iterable[str] = (), clock: Callable[[], float] = time.time) -> None:
        self._folder, self._clock = Folder(folder), clock
        self._path = folder
        (folder / RECORD).mkdir(parents=True, exist_ok=True)
        self._numbers: dict[str, int] = {name: number for number, name in enumerate(names)}
        self._views: dict[str, PeerView] = {}  # by name: the newest
        self._silent: dict[str, str] = {}  # by address: why
        self._at: dict[str, str] = {}  # address by name
        self._offsets: dict[str, tuple[int, float]] = {}
        self._scores: dict[str, dict[str, float]] = {}
        self._lost: dict[str, int] = {}
        self._sent: dict[str, int] = {}
        self._lines: dict[str, list[Any]] = {EVENTS: [], STATES: [], METRICS: []}
        self._files: dict[str, RecordFile] = {}
        self.began: float | None = None
        """The wall clock's time that is 0 in the record."""
        self._now = self._since = 0.0
        self._state: dict[str, Any] = {}
        self._peers = b""
        self._told: dict[str, int] = {}  # how many lines are in each file
        self._written = (-1, "", 0.0)  # clients, method, since: what heads say

    def take(self, answers: Mapping[str, Answer]) -> None:
        """Take a round of answers in, by address: a view, or why there is none."""
        now = self._clock()
        found: list[tuple[float, PeerView, Fact]] = []
        for address, answer in answers.items():
            if isinstance(answer, str):
                self._silent[address] = answer[:300]
                continue
            self._silent.pop(address, None)
            self._views[answer.name], self._at[answer.name] = answer, address
            pushed = sum(one[3] for one in answer.facts if one[0] == "s")
            self._sent[answer.name] = max(0, answer.status.bytes_out - pushed)
            offset = self._offset(answer, now)
            found += [(min(max(fact[1] + offset, now - _OLDEST), now), answer, fact) for fact in answer.facts]
        known = {one.name for view in self._views.values() for one in view.status.neighbours}
        for name in (*sorted(self._views), *sorted(known)):
            self._number(name)
        if not self._views:  # nobody has answered yet
            return
        found.sort(key=lambda one: one[0])
        if self.began is None:
            self.began = found[0][0] if found else now
        for when, view, fact in found:
            self._now = max(self._now, round(when - self.began, 3))
            self._happen(self._now, view, fact)
            if fact[0] == "m" and fact[5] is not None:
                self._measure(view.measure)
        self._now = max(self._now, round(now - self.began, 3))
        self._visits()
        self._stand()
        try:
            self._write()
        except OSError:  # the disk may have room again later; then all is written once more
            self._written = (-1, "", 0.0)

    def close(self) -> None:
        """Close the files."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _number(self, name: str) -> int | None:
        """Return a peer's number, a new one if it is new; of too many, none."""
        if name not in self._numbers and len(self._numbers) < MOST_PEERS and NAME.fullmatch(name):
            self._numbers[name] = len(self._numbers)
        return self._numbers.get(name)

    def _offset(self, view: PeerView, now: float) -> float:
        """Return how far this clock is ahead of a peer's, the same as before unless one of them was set anew."""
        offset, (life, before) = now - view.now, self._offsets.get(view.name, (None, 0.0))
        if life != view.life or abs(offset - before) > _JUMP:
            self._offsets[view.name] = (view.life, offset)
        return self._offsets[view.name][1]

    def _happen(self, t: float, view: PeerView, fact: Fact) -> None:
        """Add the event that a fact is, if it is one here."""
        kind, me = fact[0], self._numbers.get(view.name)
        if me is None:
            return
        events, born = self._lines[EVENTS], BORN + round(1000 * t)
        if kind == "m":
            merged: list[int] = []
            for at in range(0, len(fact[4]), 3):
                if (other := self._number(fact[4][at])) is not None:
                    merged += [other, max(0, born - fact[4][at + 2]), fact[4][at + 1]]
            events.append(["m", t, me, born, fact[3], merged])
            waits = fact[4][2::3]
            known = {
                "events": fact[2],
                "score": fact[5],
                "loss": fact[6],
                "waited": sum(waits) / len(waits) / 1000 if waits else None,
            }
            said = {key: value for key, value in known.items() if value is not None}
            self._scores[view.name] = self._scores.get(view.name, {}) | said
        elif kind == "f":
            self._lines[STATES].append({"t": t, "failed": me, "why": "its own log says why"})
        elif kind == "w":
            events.append(["w", t, me, fact[3], fact[2]])
        elif kind == "p":
            if fact[2] in VISITS:
                events.append(["p", t, me, fact[2]])
        elif kind == "r":
            events.append(["r", t, me, self._number(fact[2]), fact[3]])
        elif (other := self._number(fact[2])) is not None:
            self._passed(t, view, fact, me, other, born)

    def _passed(self, t: float, view: PeerView, fact: Fact, me: int, other: int, born: int) -> None:
        """Add what passed between two peers. A push is told by its sender, or by its receiver if nobody asks that."""
        kind, name, size, *more = fact[0], *fact[2:]
        if kind == "x":
            self._lines[EVENTS].append(["x", t, me, other, size])
        elif kind == "s":
            lost = more[0] not in _ARRIVED
            self._lost[view.name] = self._lost.get(view.name, 0) + lost
            self._sent[view.name] = sent = self._sent[view.name] + size
            self._lines[EVENTS].append(["s", t, me, born, _safe(sent), [other, size], [other] if lost else []])
        elif name not in self._views:
            self._sent[name] = sent = self._sent.get(name, 0) + size
            self._lines[EVENTS].append(["s", t, other, born, _safe(sent), [me, size], []])

    def _online(self) -> set[str]:
        """Return who is there: those who answer here, and those who answer somebody who does."""
        here = {name for name, address in self._at.items() if address not in self._silent}
        others = {one.name for name in here for one in self._views[name].status.neighbours if one.state == "answers"}
        return here | (others - set(self._at))

    def _visits(self) -> None:
        """Add that one who was asked before answers no more, or again."""
        online, before = self._online(), self._state.get("online", "")
        for name in self._at:
            number = self._numbers.get(name, len(before))
            if number < len(before) and (before[number] == "1") != (name in online):
                self._lines[EVENTS].append(["p", self._now, number, ANSWERS if name in online else SILENT])

    def _stand(self) -> None:
        """Add how all stand now, if that has changed."""
        online, views = self._online(), self._views
        events = sum(view.status.events for view in views.values())
        state: dict[str, Any] = {
            "steps": _safe(events),
            "online": "".join("01"[name in online] for name in self._numbers),
            "held": " ".join(str(views[name].held) if name in views else "-" for name in self._numbers),
            "waiting": " ".join(str(views[name].waiting) if name in views else "-" for name in self._numbers),
            "sent": [_safe(self._sent.get(name, 0)) for name in self._numbers],
            "lost": [self._lost.get(name, 0) for name in self._numbers],
            "metric": [self._scores.get(name, {}).get("score") for name in self._numbers],
        }
        if founded := self._founded():
            held, waiting = (sum(getattr(view, key) for view in views.values()) for key in ("held", "waiting"))
            quanta = {"founded": founded, "held": held, "waiting": waiting}
            quanta["under_way"] = max(0, founded - held - waiting)
            zero = dict.fromkeys(("folded", "written_off", "missing"), 0)
            state["book"] = {key: str(value) for key, value in (quanta | zero).items()} | {"exact": False, "near": True}
        then = self._lines[STATES][-1]["t"] if self._lines[STATES] else -_SAY_AGAIN
        if state != self._state or self._now - then >= _SAY_AGAIN:
            self._lines[STATES].append({"t": self._now, **state})
        self._state = state

    def _measure(self, measure: Measure) -> None:
        """Add a row to the metrics: the newest score of everybody, now that one has a new one."""
        known = list(self._scores.values())
        row = {
            **figures(measure, [{measure.name: one["score"]} for one in known if "score" in one]),
            **written([measure]),
            "time": self._now,  # whatever the metric is called
            "online": len(self._online()),
            "steps": round(sum(one["events"] for one in known)),
            "bytes_sent": sum(self._sent.values()),
        }
        for key, name in (("loss", "train_loss"), ("waited", "waited")):
            if values := [one[key] for one in known if key in one]:
                row[name] = statistics.fmean(values)
        self._lines[METRICS].append(row)

    def _founded(self) -> int:
        return max((view.founded for view in self._views.values()), default=0)

    def _write(self) -> None:
        """Append what is new; begin the files anew when there is a new peer, or too much in them."""
        for name, lines in self._lines.items():
            if len(lines) > 2 * KEPT:
                del lines[:-KEPT]
                self._since = max(self._since, lines[0][1] if name == EVENTS else 0.0)
        method = next((view.status.method for view in self._views.values() if view.status.method), "unknown")
        now = (len(self._numbers), method, self._since)
        if now != self._written:
            self._anew(method)
            self._written = now
        for name, lines in self._lines.items():
            if name in self._files:
                for line in lines[self._told[name] :]:
                    self._files[name].add(line)
                self._files[name].flush()
                self._told[name] = len(lines)
        self._write_peers()

    def _anew(self, method: str) -> None:
        self.close()
        clients = len(self._numbers)
        if not (self._path / CONFIG).is_file():
            self._folder.write_config({"clients": clients, "seed": 0, "method": {"name": method}})
        head = {"version": VERSION, "clients": clients, "since": self._since}
        more = {
            "horizon": 0.0, "every": 1, "instant": True, "joins": {}, "samples": None, "online": [], "seconds": True,
            "founded": str(founded) if (founded := self._founded()) else None, "names": list(self._numbers),
        }  # fmt: skip
        self._lines[EVENTS] = [line for line in self._lines[EVENTS] if line[1] >= self._since]
        self._lines[STATES] = [_wider(line, clients) for line in self._lines[STATES] if line["t"] >= self._since]
        for name, first in ((EVENTS, [head | more]), (STATES, [head]), (METRICS, [])):
            file = self._path / name if name == METRICS else self._path / RECORD / name
            data = "".join(as_json(line) + "\n" for line in [*first, *self._lines[name]]).encode()
            write_whole(file, data)
            self._files[name] = RecordFile(file, len(data))
        self._told = {name: len(lines) for name, lines in self._lines.items()}

    def _write_peers(self) -> None:
        """Write how each peer is now, in the order of their numbers."""
        online = self._online()
        found = [self._peer(name, online) for name in self._numbers]
        unheard = {address: why for address, why in self._silent.items() if address not in self._at.values()}
        data = json.dumps({"peers": found, "silent": unheard}).encode()
        if data != self._peers:
            write_whole(self._path / RECORD / PEERS, data)
        self._peers = data

    def _peer(self, name: str, online: set[str]) -> dict[str, Any]:
        view = self._views.get(name)
        if view is None:
            return {"name": name, "asked": False, "online": name in online}
        said, address = view.status, self._at[name]
        wrong = [list(problem[1:]) for problem in problems(said, view.now)]
        if why := self._silent.get(address):
            wrong.insert(0, ["critical", f"it does not answer: {why}", "what is shown is the last that it said"])
        refusals = {why: _safe(count) for why, count in said.refusals.items()}
        days = int((said.certificate_end - view.now) // 86_400) if said.certificate_end else None
        return {
            "name": name, "asked": True, "online": name in online, "address": address, "version": said.version,
            "network": said.network, "phase": said.phase, "method": said.method, "boot": _safe(said.boot),
            "events": _safe(said.events), "models": _safe(said.models), "certificate_days": days, "refusals": refusals,
            "bytes_in": _safe(said.bytes_in), "bytes_out": _safe(said.bytes_out), "problems": wrong[:20],
            "neighbours": [[one.name, one.state] for one in said.neighbours],
        }  # fmt: skip


def _safe(count: int) -> int:
    """Return a number that somebody says as one that the record may have."""
    return min(count, SAFE)


def _wider(state: dict[str, Any], clients: int) -> dict[str, Any]:
    """Return a state with so many clients: those that were not known yet are unknown in it."""
    if "held" not in state:
        return state
    more = clients - len(state["online"])
    return state | {
        "online": state["online"] + "0" * more,
        **{key: state[key] + " -" * more for key in ("held", "waiting")},
        **{key: state[key] + [0] * more for key in ("sent", "lost")},
        "metric": state["metric"] + [None] * more,
    }
