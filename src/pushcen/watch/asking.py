"""Asks real peers how they are, once a second, in a thread, and keeps the record of it (`network`)."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from pushcen.errors import NetworkError, PushcenError
from pushcen.folder import Folder
from pushcen.runtime.looking import PeerView, WatchedPeer
from pushcen.runtime.views import AT_ONCE
from pushcen.watch.network import Answer, NetworkRecord

EVERY = 1.0
"""Seconds between two rounds."""


@contextlib.contextmanager
def recording(peers: Sequence[WatchedPeer], folder: Path, names: Sequence[str] = ()) -> Iterator[NetworkRecord]:
    """Record what peers say of themselves within this context, in a run's folder; `names` are known before they say."""
    files, stop = Folder(folder), threading.Event()
    with files.opened():
        files.write_status("running")
        record = NetworkRecord(folder, names)
        thread = threading.Thread(target=lambda: asyncio.run(_rounds(peers, record, stop)), daemon=True)
        thread.start()
        try:
            yield record
        finally:
            stop.set()
            thread.join()
            record.close()
            files.write_status("interrupted")


def first_look(peers: Sequence[WatchedPeer], folder: Path) -> dict[str, str]:
    """Record all that peers have to say now, once; return why some, by address, say nothing."""

    async def look() -> dict[str, Answer]:
        try:
            while True:
                answers = await _round(peers)
                record.take(answers)
                if not _more(answers):
                    return answers
        finally:
            await _close(peers)

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
    try:
        while not stop.is_set():
            answers = await _round(peers)
            record.take(answers)
            if not _more(answers):
                await asyncio.to_thread(stop.wait, EVERY)
        record.take(await _round(peers))  # the last word, as of a network that has just stopped
    finally:
        await _close(peers)


async def _round(peers: Sequence[WatchedPeer]) -> dict[str, Answer]:
    """Ask everybody at once."""

    async def ask(peer: WatchedPeer) -> Answer:
        try:
            return await peer.look()
        except (PushcenError, OSError, TimeoutError) as error:
            return str(error)

    return dict(zip([peer.address for peer in peers], await asyncio.gather(*map(ask, peers)), strict=True))


def _more(answers: dict[str, Answer]) -> bool:
    return any(isinstance(answer, PeerView) and len(answer.facts) == AT_ONCE for answer in answers.values())


async def _close(peers: Sequence[WatchedPeer]) -> None:
    await asyncio.gather(*(peer.close() for peer in peers))
