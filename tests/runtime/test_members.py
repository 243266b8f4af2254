"""Whom a peer knows: bounded, gossiped, backed off, and met again."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushcen.errors import OptionError
from pushcen.protocol import Contact
from pushcen.runtime.gate import Budget, Rate
from pushcen.runtime.members import Members, check_address
from pushcen.runtime.options import RuntimeOptions
from pushcen.runtime.wire import Signed


def members(**settings):
    return Members("me", RuntimeOptions(**{"view": 4, "known": 8, **settings}), Random(0))


def met(table, *names, now=0.0):
    for name in names:
        table.meet(name, f"{name}:7000", now)
        table.heard(name, Contact(f"{name}/1", 1), now)


def test_pushes_go_to_a_view_that_changes_slowly_and_reaches_all():
    table = members()
    met(table, *(f"p{i}" for i in range(8)))
    first = set(table.draw(0))
    assert len(first) == 4
    assert len(table.draw(3)) == 3
    assert len(first & set(table.draw(0))) >= 3
    assert {name for _ in range(300) for name in table.draw(0)} == set(table.all)


def test_who_does_not_answer_is_backed_off_then_left_out_and_may_come_back():
    table = members(retry_first=1.0, retry_last=8.0, give_up=6)
    met(table, "ann", "bob")
    waits, now = [], 0.0
    for attempt in range(6):
        assert table.silent("ann", now) == (attempt == 5)
        assert "ann" not in table.draw(0)
        if "ann" in table.all:
            waits.append(table.all["ann"].next_try - now)
            assert "ann" not in table.due(now)
            now = table.all["ann"].next_try
            assert "ann" in table.due(now)
    assert all(0.5 * 2**i <= wait / 1.0 <= 1.5 * 2**i for i, wait in enumerate(waits[:4]))
    assert waits[4] <= 12.0
    assert table.lost == {"ann": "ann:7000"}
    met(table, "ann", now=now)
    assert "ann" in table.draw(0)
    assert table.lost == {}


def test_a_record_that_was_signed_again_in_the_same_boot_is_news_once():
    table = members()

    def learn(boot, **serial):
        fields = {"peer": "ann/1", "boot": boot, "address": "ann:7000", **serial}
        return table.learn(Signed(body=repr(fields).encode()), "ann", fields, 0.0, lambda _: False)

    assert [learn(1), learn(1), learn(1, serial=1), learn(1, serial=1), learn(1), learn(2)] == [
        True, False, True, False, False, True,
    ]  # fmt: skip
    for wrong in (-1, 1.5, "2", True, None, 1 << 80):
        with pytest.raises(ValueError, match="serial"):
            learn(3, serial=wrong)


@given(st.lists(st.tuples(st.sampled_from([f"p{i}" for i in range(40)]), st.sampled_from("mhsf")), max_size=200))
def test_the_table_stays_bounded_whatever_happens(steps):
    table = members()
    for now, (name, step) in enumerate(steps):
        if step == "m":
            table.meet(name, f"{name}:7000", now)
        elif step == "h" and name in table.all:
            table.heard(name, Contact(f"{name}/1", 1), now)
        elif step == "s":
            table.silent(name, now)
        elif step == "f":
            table.close(f"{name}/1")
        assert len(table.all) <= 8
        assert len(table.lost) <= 8
        assert set(table.draw(0)) <= {member.name for member in table.online()}


def test_who_is_owed_something_is_not_forgotten_for_somebody_new():
    table = members(view=2, known=2)
    met(table, "ann", "bob")
    table.silent("ann", 0.0)
    assert table.meet("new", "new:1", 0.0, owed=lambda name: name == "ann") is None
    assert table.meet("new", "new:1", 0.0) is not None
    assert "ann" not in table.all


def test_only_a_peers_own_and_newer_word_moves_it():
    table = members()
    record = Signed(body=b"x")
    owed = lambda _: False  # noqa: E731
    fields = {"peer": "ann/1", "boot": 2, "address": "ann:7000"}
    assert table.learn(record, "ann", fields, 0.0, owed)
    assert not table.learn(record, "bob", {**fields, "boot": 3}, 0.0, owed)
    assert not table.learn(record, "ann", {**fields, "boot": 1, "address": "old:1"}, 0.0, owed)
    assert table.learn(record, "ann", {**fields, "boot": 3, "address": "new:1"}, 0.0, owed)
    assert table.all["ann"].address == "new:1"
    table.close("ann/1")
    assert not table.learn(record, "ann", {**fields, "boot": 4}, 0.0, owed)
    assert table.learn(record, "ann", {"peer": "ann/2", "boot": 1, "address": "ann:7000"}, 0.0, owed)


@pytest.mark.parametrize("address", ["", "host", "host:0", "host:99999", "a b:1", "host:1:2", "x" * 300 + ":1", 7])
def test_addresses_are_host_and_port(address):
    with pytest.raises(OptionError):
        check_address(address)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=100))
def test_a_rate_holds_over_any_time(times):
    rate, times = Rate(2.0), sorted(times)
    allowed = [now for now in times if rate.allows("ann", now)]
    assert len(allowed) <= 6 + 2.0 * (times[-1] - times[0]) + 1


def test_a_budget_is_never_exceeded_but_by_one_message():
    budget = Budget(100)
    assert budget.take(500)
    assert not budget.take(1)
    budget.give(500)
    assert budget.take(60)
    assert budget.take(40)
    assert not budget.take(1)
