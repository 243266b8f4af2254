"""Asks real peers how they are, once a second, in a thread, and keeps the record of it (`network`)."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pushcen.errors import NetworkError, PushcenError
from pushcen.folder import Folder
from pushcen.runtime.facts import MOST
from pushcen.runtime.looking import PeerView, RemotePeer, WatchedPeer
from pushcen.runtime.members import hosts_of
from pushcen.runtime.network import NAME
from pushcen.runtime.reach.hosted import HostedPeer
from pushcen.runtime.views import AT_ONCE
from pushcen.watch.network import Answer, NetworkRecord

EVERY = 1.0
"""Seconds between two rounds."""
_LAST, _TICK = 5, 0.2  # last questions to who still trains, and seconds between them
_IN_A_ROW = MOST // AT_ONCE + 1  # questions that are enough for all that a peer remembers
_MOST_HOSTED = 32  # peers that only dial out: fewer than the tunnels that a host gives to one member


class Recording:
    """Records what peers say of themselves in a folder, until its end; `names` are known before they say."""

    def __init__(self, peers: Sequence[WatchedPeer], folder: Path, names: Sequence[str] = ()) -> None:
        self._record, self._stop = NetworkRecord(folder, names), threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(_rounds(peers, self._record, self._stop)), daemon=True
        )
        self._thread.start()

    @property
    def began(self) -> float | None:
        """The wall clock's time that is 0 in the record."""
        return self._record.began

    def end(self) -> None:
        """Ask all for their last word; who stops peers ends this before."""
        self._stop.set()
        self._thread.join()
        self._record.close()


@contextlib.contextmanager
def recording(peers: Sequence[WatchedPeer], folder: Path, names: Sequence[str] = ()) -> Iterator[Recording]:
    """Record what peers say of themselves within this context, in a run's folder."""
    files = Folder(folder)
    with files.opened():
        files.write_status("running")
        recording = Recording(peers, folder, names)
        try:
            yield recording
        finally:
            recording.end()
            files.write_status("interrupted")


def first_look(peers: Sequence[WatchedPeer], folder: Path) -> dict[str, str]:
    """Record all that peers have to say now, once; return why some, by address, say nothing."""
    asked = _Asked(peers)

    async def look() -> dict[str, Answer]:
        try:
            answers = await asked.round()
            record.take(answers)
            return answers
        finally:
            await asked.close()

    record = NetworkRecord(folder)
    try:
        answers = asyncio.run(look())
    finally:
        record.close()
    silent = {address: answer for address, answer in answers.items() if isinstance(answer, str)}
    if len(silent) == len(answers):
        raise NetworkError("no peer shows how it is: " + "; ".join(f"{at}: {why}" for at, why in silent.items()))
    return silent


async def _rounds(peers: Sequence[WatchedPeer], record: NetworkRecord, stop: threading.Event) -> None:
    asked = _Asked(peers)
    try:
        while not stop.is_set():
            record.take(await asked.round())
            await asyncio.to_thread(stop.wait, EVERY)
        for _ in range(_LAST):
            record.take(answers := await asked.round())
            if not any(isinstance(one, PeerView) and one.status.phase == "training" for one in answers.values()):
                break
            await asyncio.sleep(_TICK)  # it may have committed its last event, and not told of it yet
    finally:
        await asked.close()


class _Asked:
    """Who is asked: those who were named, and those who only dial out and are hosted by one of them."""

    def __init__(self, peers: Sequence[WatchedPeer]) -> None:
        self._peers = peers
        self._identity = next((peer.identity for peer in peers if isinstance(peer, RemotePeer)), None)
        self._hosted: dict[str, HostedPeer] = {}

    async def round(self) -> dict[str, Answer]:
        """Ask everybody at once, and then whom they host and nobody knew of: what is told together is in one order."""
        answers = await _ask_all([*self._peers, *self._hosted.values()])
        new = self._find({at: one for at, one in answers.items() if isinstance(one, PeerView)})
        return answers | await _ask_all(new)

    def _find(self, views: dict[str, PeerView]) -> list[HostedPeer]:
        """Find out who is hosted by whom now; return those who are new."""
        if self._identity is None:
            return []
        before, named = set(self._hosted), {view.name for view in views.values()} - set(self._hosted)
        hosts: dict[str, dict[str, str]] = {name: {} for name in self._hosted}
        for address, view in views.items():
            for one in view.status.neighbours:
                if view.name in hosts_of(one.address) and one.name not in named and NAME.fullmatch(one.name):
                    hosts.setdefault(one.name, {})[view.name] = address
        for name, theirs in hosts.items():
            if name not in self._hosted and len(self._hosted) < _MOST_HOSTED:
                self._hosted[name] = HostedPeer(self._identity, name)
            if name in self._hosted:
                self._hosted[name].hosts = theirs
        return [peer for name, peer in self._hosted.items() if name not in before]

    async def close(self) -> None:
        """Hang up on all."""
        await asyncio.gather(*(peer.close() for peer in [*self._peers, *self._hosted.values()]))


async def _ask_all(peers: Sequence[WatchedPeer]) -> dict[str, Answer]:
    return dict(zip([peer.address for peer in peers], await asyncio.gather(*map(_ask, peers)), strict=True))


async def _ask(peer: WatchedPeer) -> Answer:
    """Ask a peer for all that is new; of one that never ends, for no more than an honest one has."""
    found: PeerView | None = None
    try:
        for _ in range(_IN_A_ROW):
            view = await peer.look()
            found = replace(view, facts=[*found.facts, *view.facts]) if found else view
            if len(view.facts) < AT_ONCE:
                break
    except (PushcenError, OSError, TimeoutError) as error:
        return found or str(error)
    assert found is not None
    return found
