"""Peers are asked for all that is new, and no longer than an honest one has something to say."""

import threading
from dataclasses import replace

import pytest

from pushcen.errors import NetworkError
from pushcen.runtime.looking import WatchedPeer
from pushcen.runtime.views import AT_ONCE
from pushcen.watch.asking import first_look, recording
from tests.watch.test_network import merges, view, whole


def test_one_that_never_ends_keeps_nobody_waiting(tmp_path):
    class Endless(WatchedPeer):
        async def look(self):
            return view("eve", *[("f", 99.0)] * AT_ONCE)

    found = []
    looking = threading.Thread(target=lambda: found.append(first_look([Endless("h:1")], tmp_path / "net")), daemon=True)
    looking.start()
    looking.join(60)
    assert found == [{}]


def test_of_those_who_have_much_to_tell_all_is_told_in_one_order(tmp_path):
    class Remembers(WatchedPeer):
        async def look(self):
            [*now], self.left = self.left[:AT_ONCE], self.left[AT_ONCE:]
            return view(self.address, *now)

    ann, bob = Remembers("ann"), Remembers("bob")
    ann.left, bob.left = [("f", at / 100) for at in range(3 * AT_ONCE // 2)], [("f", 9.0)]
    first_look([ann, bob], tmp_path / "net")
    times = [state["t"] for state in whole(tmp_path)["states"] if state.get("failed") == 0]
    assert times == pytest.approx([at / 100 for at in range(3 * AT_ONCE // 2)])


def test_of_peers_that_are_stopped_after_the_end_the_last_event_is_told_and_nobody_is_silent(tmp_path):
    class Trains(WatchedPeer):
        phase, facts, running = "training", (), True

        async def look(self):
            if not self.running:
                raise NetworkError("connection refused")
            if ended.is_set():
                self.phase, self.facts = "done", (merges(99.0),)
            asked.set()
            said = view("ann", *self.facts)
            return replace(said, status=replace(said.status, phase=self.phase))

    asked, ended, ann = threading.Event(), threading.Event(), Trains("h:1")
    with recording([ann], tmp_path / "net") as made:
        asked.wait(60)
        threading.Timer(0.3, ended.set).start()  # it has committed its last event, and is still measuring
        made.end()
        ann.running = False
    update = whole(tmp_path)
    assert [event[0] for event in update["events"]] == ["m"]
    assert [state["online"] for state in update["states"] if "online" in state][-1][0] == "1"
