"""Clients that come and go as a trace says, again and again; broken traces are refused whole."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushcen.config import ConfigError, load_config
from pushcen.errors import OptionError
from pushcen.simulation import ParticipationOptions
from pushcen.simulation.worlds.day_and_night import AT_NIGHT, day_and_night
from pushcen.simulation.worlds.traces import read_trace
from tests.simulation.worlds import run, world

ONE = {"active": [2, 6], "inactive": [4, 7], "finish_time": 10}


def written(path, trace):
    path.write_text(json.dumps(trace))
    return str(path)


def is_active(entry, second):
    """Whether a device is there, by going through its list (FedScale's rule, with the end left out)."""
    at = second % Fraction(entry["finish_time"])
    return any(a <= at < b for a, b in zip(entry["active"], entry["inactive"], strict=True))


@st.composite
def entries(draw):
    finish = draw(st.integers(1, 50))
    times = sorted(draw(st.lists(st.integers(0, finish), min_size=2, max_size=8)))
    times = times[: len(times) // 2 * 2]
    if all(a == b for a, b in zip(times[::2], times[1::2], strict=True)):
        times = [0, finish]
    return {"active": times[::2], "inactive": times[1::2], "finish_time": finish}


@given(entries(), st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(60), Fraction(7, 3)]))
def test_a_client_is_there_exactly_when_its_trace_says_so(tmp_path_factory, entry, unit):
    path = written(tmp_path_factory.mktemp("trace") / "t.json", {"a": entry})
    [found] = read_trace(path, 1, 0, unit, horizon=10.0)
    for half_seconds in range(0, 6 * entry["finish_time"] + 1):
        second = Fraction(half_seconds, 2) + Fraction(1, 4)  # between the changes, which are at whole seconds
        assert found.is_there(float(second / unit)) == is_active(entry, second), (second, found)
    now, changes = 0.0, 0
    state = found.is_there(0.0)
    while (later := found.next_change(now)) < 5 * found.cycle:
        assert later > now
        now, changes, state = later, changes + 1, not state
        assert found.is_there(now) == state
    online = sum(is_active(entry, Fraction(at) + Fraction(1, 2)) for at in range(entry["finish_time"]))
    assert found.share == pytest.approx(online / entry["finish_time"])
    assert (changes == 0) == (online == entry["finish_time"])


def test_each_client_has_a_device_of_its_own_drawn_by_the_seed(tmp_path):
    trace = {str(i): {"active": [i], "inactive": [i + 1], "finish_time": 100} for i in range(10)}
    path = written(tmp_path / "t.json", trace)
    found = [read_trace(path, 10, seed, Fraction(1), 1.0) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
    assert len({one.changes for one in found[0]}) == 10
    assert [one.changes for one in read_trace(path, 25, 1, Fraction(1), 1.0)][10:20] == [o.changes for o in found[0]]


def test_npz_and_json_are_the_same_trace(tmp_path):
    trace = day_and_night(5, days=2, seed=3)
    lists = {name: [one[name] for one in trace.values()] for name in ("active", "inactive")}
    np.savez(
        tmp_path / "t.npz",
        active=np.concatenate(lists["active"]),
        inactive=np.concatenate(lists["inactive"]),
        counts=[len(one) for one in lists["active"]],
        finish_time=[one["finish_time"] for one in trace.values()],
    )
    from_json = read_trace(written(tmp_path / "t.json", trace), 5, 0, Fraction(60), 100.0)
    assert from_json == read_trace(str(tmp_path / "t.npz"), 5, 0, Fraction(60), 100.0)


BROKEN = {
    "no object": ([], "must be an object of device"),
    "no devices": ({}, "has no devices"),
    "no entry": ({"a": 3}, "client 'a': must be an object"),
    "a field is missing": ({"a": {"active": [1], "inactive": [2]}}, "client 'a': finish_time: is missing"),
    "no list": ({"a": {**ONE, "active": 1}}, "client 'a': active: must be a list of finite numbers"),
    "a text": ({"a": {**ONE, "inactive": ["4", 7]}}, "client 'a': inactive: must be a list of finite numbers"),
    "true": ({"a": {**ONE, "active": [True, 6]}}, "client 'a': active: must be"),
    "nan": ({"a": {**ONE, "active": [math.nan, 6]}}, "client 'a': active: must be"),
    "infinite": ({"a": {**ONE, "finish_time": math.inf}}, "client 'a': finish_time: must be a finite number"),
    "huge": ({"a": {**ONE, "finish_time": 10**400}}, "client 'a': finish_time: must be a finite number"),
    "no cycle": ({"a": {**ONE, "finish_time": 0}}, "client 'a': finish_time = 0: must be above 0"),
    "never there": ({"a": {"active": [], "inactive": [], "finish_time": 9}}, "client 'a': active: must have"),
    "never for long": ({"a": {"active": [3], "inactive": [3], "finish_time": 9}}, "client 'a': active: is never"),
    "not as many": (
        {"a": {**ONE, "inactive": [4]}},
        "client 'a': inactive: must have as many times as active: 1 and 2",
    ),
    "below zero": ({"a": {**ONE, "active": [-1, 6]}}, "client 'a': active: .* -1 is out of order"),
    "goes before it comes": ({"a": {**ONE, "inactive": [1, 7]}}, "client 'a': inactive: .* 1 is out of order"),
    "overlapping": ({"a": {**ONE, "active": [2, 3]}}, "client 'a': active: .* 3 is out of order"),
    "after the end": ({"a": {**ONE, "finish_time": 6.5}}, "client 'a': finish_time: .* 7 is out of order"),
    "the second one": ({"a": ONE, "b": {**ONE, "active": [5, 6]}}, "client 'b': inactive"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_trace_is_refused_with_client_and_field(tmp_path, name):
    trace, complaint = BROKEN[name]
    with pytest.raises(OptionError, match=rf"participation.trace = '.*t.json': {complaint}"):
        read_trace(written(tmp_path / "t.json", trace), 4, 0, Fraction(1), 10.0)


def test_what_is_no_such_file_is_refused(tmp_path):
    path = tmp_path / "t.json"
    for text, complaint in (
        ("{", "must be a JSON file"),
        ("[" * 100_000, "must be a JSON file"),
        ('{"a": 1, "a": 2}', "'a' is there twice"),
    ):
        path.write_text(text)
        with pytest.raises(OptionError, match=complaint):
            read_trace(str(path), 1, 0, Fraction(1), 1.0)
    path.write_bytes(b"\x80\x04\x95")  # a pickle begins like this
    with pytest.raises(OptionError, match=r"must be a text file"):
        read_trace(str(path), 1, 0, Fraction(1), 1.0)
    for bad in (str(tmp_path), str(tmp_path / "none.json"), str(tmp_path / "none.npz"), "/dev/zero"):
        with pytest.raises(OptionError, match=r"participation.trace = "):
            read_trace(bad, 1, 0, Fraction(1), 1.0)
    np.savez(tmp_path / "t.npz", active=[1], inactive=[2], counts=[2], finish_time=[3])
    with pytest.raises(OptionError, match=r"active: must have as many numbers as counts add up to"):
        read_trace(str(tmp_path / "t.npz"), 1, 0, Fraction(1), 1.0)
    np.savez(tmp_path / "t.npz", active=np.array([{}]), inactive=[2], counts=[1], finish_time=[3])
    with pytest.raises(OptionError, match=r"active has type object"):
        read_trace(str(tmp_path / "t.npz"), 1, 0, Fraction(1), 1.0)


def test_a_trace_that_would_never_end_is_refused(tmp_path):
    path = written(tmp_path / "t.json", {"a": {"active": [0], "inactive": [1e-9], "finish_time": 2e-9}})
    with pytest.raises(OptionError, match=r"would come and go .* times until horizon = 60.*is time_unit right"):
        read_trace(path, 4, 0, Fraction(60), 60.0)


@pytest.mark.parametrize("zones", [(0.0,), (0.0, 8.0, -5.5)])
def test_made_up_days_have_the_share_online_that_was_asked_for(zones):
    trace = day_and_night(2000, days=3, seed=5, zones=zones)
    assert trace == day_and_night(2000, days=3, seed=5, zones=zones)
    assert trace != day_and_night(2000, days=3, seed=6, zones=zones)
    for hour in (0, 3, 6, 12, 21):
        online = np.mean([is_active(one, Fraction(86_400 + hour * 3600)) for one in trace.values()])
        wanted = np.mean([AT_NIGHT[int((hour + zone) // 1) % 24] * (1 - zone % 1)
                          + AT_NIGHT[int((hour + zone) // 1 + 1) % 24] * (zone % 1) for zone in zones])  # fmt: skip
        assert online == pytest.approx(wanted, abs=0.05)


def test_made_up_traces_can_be_read(tmp_path):
    path = written(tmp_path / "t.json", day_and_night(50, days=2, seed=1, zones=(-3.0, 0.0, 9.0)))
    shares = [one.share for one in read_trace(path, 50, 0, Fraction(60), 100.0)]
    assert 0.25 < sum(shares) / 50 < 0.45


@pytest.mark.parametrize("wrong", [
    {"clients": 0}, {"days": 0}, {"online": (0.5,) * 23}, {"online": (0.0,) * 24}, {"online": (1.5,) * 24},
    {"online": (math.nan,) * 24}, {"zones": ()}, {"zones": (99.0,)},
])  # fmt: skip
def test_days_that_cannot_be_made_are_refused(wrong):
    with pytest.raises(OptionError):
        day_and_night(**({"clients": 2} | wrong))


def test_a_trace_needs_a_unit_of_time_and_no_churn_beside_it(tmp_path):
    path = written(tmp_path / "t.json", {"a": ONE})
    with pytest.raises(ConfigError, match=r"participation.trace = .*: needs time_unit, which says how long"):
        load_config({"participation": {"trace": path}})
    with pytest.raises(ConfigError, match=r"participation.churn = 0.5: must be 0 where participation.trace = .* says"):
        load_config({"participation": {"trace": path, "churn": 0.5}, "time_unit": "1 s"})


class Watch:
    """Notes who is online after each act."""

    def __init__(self, engine):
        self.engine = engine
        self.seen = []

    def go(self):
        while not self.engine.over:
            self.engine.act()
            self.seen.append((self.engine.now, [node.online for node in self.engine.nodes]))


@pytest.mark.parametrize("people", [{}, {"farewell": True}, {"crashes": 0.5, "between": 1.0, "repair": 0.2}])
def test_clients_come_and_go_as_the_trace_says_and_no_mass_is_lost_or_made(tmp_path, world_of, people):
    from pushcen.protocol import UNIT, audit

    trace = {str(i): {"active": [i % 5, 6], "inactive": [i % 5 + 1, 8 + i % 3], "finish_time": 10} for i in range(8)}
    path = written(tmp_path / "t.json", trace)
    engine = world_of(
        clients=8, horizon=40.0, time_unit="0.5 s", participation=ParticipationOptions(trace=path, **people)
    )
    watch = Watch(engine)
    watch.go()
    whole = read_trace(path, 8, engine.world.seed, Fraction(1, 2), 40.0)
    assert engine.steps > 50
    if not people:
        for now, online in watch.seen:
            assert online == [one.is_there(now) for one in whole] or any(
                one.next_change(now - 1e-9) == now for one in whole
            )
    else:
        assert all(not online[i] or whole[i].is_there(now) or whole[i].next_change(now - 1e-9) == now
                   for now, online in watch.seen for i in range(8))  # fmt: skip
    found = audit([node.peer.save() for node in engine.nodes] + engine.presence.left)
    assert found.violations == []
    assert found.held + found.on_links == found.founded == 8 * UNIT


def test_an_event_that_a_client_leaves_in_the_middle_is_broken_off(tmp_path, world_of):
    """As with churn: a client that is away before its compute time ends has not trained."""
    path = written(tmp_path / "t.json", {"a": {"active": [0], "inactive": [0.1], "finish_time": 100}})
    engine = world_of(clients=2, horizon=5.0, time_unit="1 s", participation=ParticipationOptions(trace=path))
    while not engine.over:
        engine.act()
    assert engine.steps == 0


def test_late_clients_come_when_they_join_or_when_they_are_there_first(tmp_path, world_of):
    path = written(tmp_path / "t.json", {"a": {"active": [3], "inactive": [5], "finish_time": 10}})
    people = ParticipationOptions(trace=path, delayed=1.0, earliest=4.0, latest=4.5)
    engine = world_of(clients=1, horizon=12.0, time_unit="1 s", participation=people)
    watch = Watch(engine)
    watch.go()
    assert min(now for now, online in watch.seen if online[0]) == engine.join_times[0]
    late = ParticipationOptions(trace=path, delayed=1.0, earliest=6.0, latest=7.0)
    engine = world_of(clients=1, horizon=14.0, time_unit="1 s", participation=late)
    watch = Watch(engine)
    watch.go()
    assert min(now for now, online in watch.seen if online[0]) == 13.0


def test_a_run_with_a_trace_is_the_same_on_one_thread_and_on_two(tmp_path):
    path = written(tmp_path / "t.json", day_and_night(8, days=1, seed=2))
    options = {"participation": ParticipationOptions(trace=path), "time_unit": "4 h", "horizon": 8.0}
    found = [run(tmp_path / str(n), workers=n, **options) for n in (1, 2)]
    assert (tmp_path / "1" / "metrics.jsonl").read_bytes() == (tmp_path / "2" / "metrics.jsonl").read_bytes()
    assert found[0]["meters"]["mass"]["exact"]
    assert world(**options).identity()["files.participation.trace"].startswith("sha256:")
