"""Peers are asked for all that is new, and no longer than an honest one has something to say."""

import threading

import pytest

from pushcen.runtime.looking import WatchedPeer
from pushcen.runtime.views import AT_ONCE
from pushcen.watch.asking import first_look
from tests.watch.test_network import view, whole


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
