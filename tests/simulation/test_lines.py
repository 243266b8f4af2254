"""Lines and links of their own for each client: as fast as the file says, and broken files are refused."""

import json
import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushcen.config import ConfigError, load_config
from pushcen.errors import OptionError
from pushcen.simulation import ComputeOptions, NetworkOptions
from pushcen.simulation.worlds.lines import Lines
from pushcen.simulation.worlds.links import read_links
from pushcen.simulation.worlds.speeds import NAMED, read_computation, read_lines

MATRIX = [[0, 10, 20], [30, 0, 40], [50, 60, 0]]
UNIT = Fraction(1)


def written(path, thing):
    path.write_text(thing if isinstance(thing, str) else json.dumps(thing))
    return str(path)


@given(
    st.lists(st.floats(1, 1e6), min_size=9, max_size=9),
    st.one_of(st.just(0.0), st.floats(1, 1e6)),
    st.integers(0, 50),
    st.sampled_from([0.0, 0.34, 1.0]),
)
def test_a_message_is_as_fast_as_the_slowest_on_its_way(tmp_path_factory, links, bandwidth, seed, share):
    path = written(tmp_path_factory.mktemp("l") / "l.json", {"bandwidth": [links[:3], links[3:6], links[6:]]})
    options = NetworkOptions(bandwidth=bandwidth, links=path, stragglers=share, slowdown=4.0)
    lines = Lines(options, 3, seed, None)
    slow = [lines._slower[client] for client in range(3)]
    assert slow.count(4.0) == round(3 * share)
    for one in range(3):
        for other in range(3):
            leaving, further = lines.times(1000, one, other, Random(0))
            slower = max(slow[one], slow[other])
            narrowest = min((bandwidth or math.inf) / slower, links[3 * one + other] / slower)
            assert leaving == (1000 / (bandwidth / slow[one]) if bandwidth else 0.0)
            assert leaving + further == pytest.approx(1000 / narrowest)
            assert further >= 0


def test_nothing_said_is_the_bandwidth_of_today_and_draws_nothing():
    rng = Random(5)
    assert Lines(NetworkOptions(bandwidth=7.0), 3, 0, None).times(10, 0, 1, rng) == (10 / 7.0, 0.0)
    assert Lines(NetworkOptions(), 3, 0, None).times(10, 0, 1, rng) == (0.0, 0.0)
    assert rng.getstate() == Random(5).getstate()


def test_three_formats_of_links_are_the_same(tmp_path):
    as_json = read_links(written(tmp_path / "l.json", {"bandwidth": MATRIX, "latency": MATRIX}), 3, 0, None)
    np.savez(tmp_path / "l.npz", bandwidth=MATRIX, latency=np.array(MATRIX, float))
    rows = [f"{i},{j},{MATRIX[i][j]},{MATRIX[i][j]}" for i in (2, 0, 1) for j in range(3) if i != j]
    table = written(tmp_path / "l.csv", "\n".join(["from,to,bandwidth,latency", *rows]))
    for found in (as_json, read_links(str(tmp_path / "l.npz"), 3, 0, None), read_links(table, 3, 0, None)):
        for i in range(3):
            for j in range(3):
                assert found.limit(i, j) == (MATRIX[i][j] or math.inf)
                assert found.delay(i, j) == MATRIX[i][j]


def test_cells_may_have_units_and_regions_are_dealt_out_or_said(tmp_path):
    links = {"regions": ["eu", "us"], "bandwidth": [["1 MB/s", 5], [6, "8 Mbit/s"]], "latency": [[0, "90 s"], [1, 0]]}
    path = written(tmp_path / "l.json", links)
    found = read_links(path, 5, 1, Fraction(60))
    assert sorted(found.region) in ([0, 0, 0, 1, 1], [0, 0, 1, 1, 1])
    assert found.region == read_links(path, 5, 1, Fraction(60)).region
    assert any(found.region != read_links(path, 5, seed, Fraction(60)).region for seed in range(2, 9))
    said = read_links(written(tmp_path / "m.json", {**links, "clients": ["us", "eu", "us"]}), 3, 0, Fraction(60))
    assert said.region == [1, 0, 1]
    assert (said.limit(0, 2), said.limit(1, 1), said.limit(1, 0), said.delay(1, 2)) == (6e7, 6e7, 5.0, 1.5)
    with pytest.raises(OptionError, match=r"bandwidth, row 0: '1 MB/s': needs time_unit"):
        read_links(path, 5, 1, None)
    regions = written(tmp_path / "r.csv", "from,to,latency\neu,us,1\nus,eu,2\n")
    assert sorted(read_links(regions, 4, 0, None).region) == [0, 0, 1, 1]


BAD = {
    "l.txt": ("", "must be a .json, .npz or .csv file"),
    "none.json": ({}, "must have a matrix bandwidth, latency, or both"),
    "unknown.json": ({"bandwith": MATRIX}, "'bandwith': must be one of bandwidth, latency"),
    "list.json": ([], "must be an object"),
    "rows.json": ({"bandwidth": [[1, 2], [3]]}, "bandwidth: must be a list of lists, with as many columns as rows"),
    "empty.json": ({"bandwidth": []}, "bandwidth: must be"),
    "sizes.json": ({"bandwidth": MATRIX, "latency": [[1]]}, "latency: must be 3 x 3, and is 1 x 1"),
    "minus.json": ({"latency": [[0, 1, 2], [3, 0, -4], [5, 6, 0]]}, "latency, row 1, column 2: -4: must be a finite"),
    "nan.json": ('{"latency": [[NaN]]}', "latency, row 0, column 0: nan: must be a finite number"),
    "huge.json": ({"latency": [[10**400]]}, "must be a finite number"),
    "true.json": ({"latency": [[True]]}, "True: must be a finite number"),
    "text.json": ({"latency": [["soon"]]}, "latency, row 0: 'soon': must be a time"),
    "few.json": ({"latency": [[0, 1], [1, 0]]}, "has 2 rows: must have one for each of the 3 clients"),
    "regions.json": ({"latency": [[0, 1], [1, 0]], "regions": ["a", "a"]}, "regions: must be 2 different names"),
    "clients.json": ({"latency": [[0]], "regions": ["a"], "clients": ["a"]}, "clients: must be a list with the region"),
    "who.json": ({"latency": [[0]], "regions": ["a"], "clients": ["a", "b", "a"]}, "client 1: 'b': must be one of a"),
    "head.csv": ("a,b,c\n", "line 1: must be from,to,bandwidth,latency"),
    "short.csv": ("from,to,latency\n0,1\n", "line 2: must have 3 values, and has 2"),
    "twice.csv": ("from,to,latency\n0,1,1\n0,1,1\n", "line 3: the link from 0 to 1 was there before"),
    "gap.csv": ("from,to,latency\n0,1,1\n1,2,1\n", "the link from 0 to 2 is missing"),
    "empty.csv": ("", "must be"),
    "quote.csv": ('from,to,latency\n"0,1,1\n', "must have 3 values|must be"),
    "nul.csv": ("from,to,latency\n0,1,\0\n", "must be"),
    "inf.csv": ("from,to,latency\n0,1,inf\n", "line 2: latency: inf: must be a finite number"),
}


@pytest.mark.parametrize("name", BAD)
def test_broken_links_are_refused_with_their_place(tmp_path, name):
    content, complaint = BAD[name]
    with pytest.raises(OptionError, match=rf"network\.links = '.*{name}': .*{complaint}"):
        read_links(written(tmp_path / name, content), 3, 0, None)


def test_broken_npz_links_are_refused(tmp_path):
    for arrays, complaint in (
        ({"bandwidth": np.full((3, 3), np.nan)}, "bandwidth: must be finite numbers"),
        ({"bandwidth": np.zeros((3, 2))}, "must be 3 x 3, and is 3 x 2"),
        ({"bandwidth": np.zeros(3)}, "must have 2 dimensions"),
        ({"bandwidth": -np.ones((3, 3))}, "row 0, column 0: -1"),
        ({"bandwidth": np.zeros((2, 2)), "clients": [0, 1, 7]}, "client 2: 7: must be one of 0, 1"),
    ):
        np.savez(tmp_path / "l.npz", **arrays)
        with pytest.raises(OptionError, match=complaint):
            read_links(str(tmp_path / "l.npz"), 3, 0, None)


def test_the_speeds_that_come_along_are_those_of_flash():
    users = json.loads(NAMED["flash"].read_text())
    assert len(users) == 19
    assert {tuple(user) for user in users.values()} == {("down_u", "down_sigma", "up_u", "up_sigma")}
    assert min(user["up_u"] for user in users.values()) == 431.0
    assert max(user["down_u"] for user in users.values()) == 17332.7
    lines = read_lines("flash", 400, 3, Fraction(60))
    ups = {round(user["up_u"] * 1024 * 60) for user in users.values()}
    assert {round(line.up.mean) for line in lines} == ups
    in_bits = read_lines("flash", 400, 3, Fraction(60), "kbit/s")
    assert [round(a.up.mean / b.up.mean, 9) for a, b in zip(lines, in_bits, strict=True)] == [8.192] * 400


def test_messages_on_a_line_vary_as_measured():
    [line] = read_lines("flash", 1, 0, UNIT)
    rng = Random(1)
    drawn = np.array([line.up.draw(rng) for _ in range(4000)])
    normal = np.random.default_rng(0).normal(line.up.mean, line.up.sigma, 40_000)
    normal = normal[normal >= line.up.mean / 10]
    assert drawn.min() >= line.up.mean / 10
    assert drawn.mean() == pytest.approx(normal.mean(), rel=0.03)
    assert drawn.std() == pytest.approx(normal.std(), rel=0.05)


def test_fedscales_capacities_are_read(tmp_path):
    devices = {"1": {"computation": 100.0, "communication": 8000}, "2": {"computation": 300, "communication": 16000}}
    path = written(tmp_path / "c.json", devices)
    assert {line.up.mean for line in read_lines(path, 50, 0, Fraction(2))} == {2e6, 4e6}
    assert set(read_computation(path, 50, 0)) == {0.5, 1.5}
    assert read_computation(path, 50, 0) == ComputeOptions(speeds=path).factors(50, 0)


@pytest.mark.parametrize(("devices", "complaint"), [
    ([], "must be an object with an entry for each device"),
    ({"a": 3}, "must be an object with an entry for each device"),
    ({"a": {"up_u": 1}}, "device 'a': up_sigma: is missing"),
    ({"a": {"up_u": 0, "up_sigma": 0, "down_u": 1, "down_sigma": 0}}, "device 'a': up_u = 0: must be"),
    ({"a": {"up_u": 1, "up_sigma": -1, "down_u": 1, "down_sigma": 0}}, "device 'a': up_sigma = -1"),
    ({"a": {"communication": math.nan}}, "device 'a': communication = nan"),
    ({"a": {"communication": "9"}}, "device 'a': communication = '9'"),
])  # fmt: skip
def test_broken_speeds_are_refused_with_device_and_field(tmp_path, devices, complaint):
    with pytest.raises(OptionError, match=rf"network\.speeds = '.*': {complaint}"):
        read_lines(written(tmp_path / "s.json", devices), 3, 0, UNIT)


def test_a_device_that_would_compute_in_no_time_is_refused(tmp_path):
    path = written(tmp_path / "c.json", {"a": {"computation": 1}, "b": {"computation": 1}, "c": {"computation": 1e-9}})
    with pytest.raises(OptionError, match=r"device 'c': computation = 1e-09: is over 1,000 times off the median"):
        read_computation(path, 2, 0)


@pytest.mark.parametrize(("section", "complaint"), [
    ({"network": {"speeds": "flsh"}}, r"network.speeds = 'flsh': must be flash, lognormal:SIGMA, or a JSON file"),
    ({"compute": {"speeds": "flash"}}, r"compute.speeds = 'flash': must be lognormal:SIGMA, or a JSON file"),
    ({"network": {"speeds": "lognormal:x", "bandwidth": 1.0}}, r"network.speeds = 'lognormal:x': must be lognormal:S"),
    ({"network": {"speeds": "lognormal:nan", "bandwidth": 1.0}}, r"must be lognormal:SIGMA"),
    ({"network": {"speeds": "lognormal:1"}}, r"network.speeds = 'lognormal:1': needs bandwidth, the median"),
    ({"network": {"speeds": "flash"}}, r"network.speeds = 'flash': needs time_unit"),
    ({"network": {"speeds": "flash", "speeds_unit": "Mb"}, "time_unit": "1 s"}, r"network.speeds_unit = 'Mb': must be"),
    ({"network": {"speeds_unit": "kB/s"}}, r"network.speeds_unit = 'kB/s': is read only where"),
    ({"network": {"stragglers": 0.5}}, r"network.stragglers = 0.5: only where bandwidth is limited"),
    ({"network": {"stragglers": 1.5, "bandwidth": 1.0}}, r"network.stragglers = 1.5"),
    ({"network": {"slowdown": 0.5}}, r"network.slowdown = 0.5"),
    ({"compute": {"stragglers": -1.0}}, r"compute.stragglers = -1.0"),
    ({"network": {"links": "none.json"}}, r"network.links = 'none.json': No such file"),
])  # fmt: skip
def test_impossible_options_are_refused(section, complaint):
    with pytest.raises(ConfigError, match=complaint):
        load_config(section)


def test_stragglers_compute_as_many_times_slower(world_of):
    usual = world_of(horizon=1.0)
    slow = world_of(horizon=1.0, compute=ComputeOptions(stragglers=0.5, slowdown=3.0))
    ratios = [one.pace / other.pace for one, other in zip(slow.nodes, usual.nodes, strict=True)]
    assert sorted(round(ratio, 9) for ratio in ratios) == [1.0] * 4 + [3.0] * 4
    drawn = world_of(horizon=1.0, compute=ComputeOptions(speeds="lognormal:0.5"))
    assert len({node.pace / other.pace for node, other in zip(drawn.nodes, usual.nodes, strict=True)}) == 8


def test_messages_arrive_when_the_slower_line_and_the_link_let_them(world_of, tmp_path):
    """One push by hand: each message leaves after the one before it, and is later if its receiver is slower."""
    latency = [[(3 * i + j) / 100 for j in range(8)] for i in range(8)]
    path = written(tmp_path / "l.json", {"latency": latency})
    network = NetworkOptions(bandwidth=1000.0, stragglers=0.5, slowdown=4.0, links=path)
    engine = world_of(network=network, horizon=10.0)
    while engine.steps == 0:
        engine.act()
    [node] = [node for node in engine.nodes if node.events]
    size, departure, slow = node.facts.sizes[0], engine.now, engine.network._lines._slower
    entries = sorted((entry for entry in engine.queue.entries() if entry[3].kind == "deliver"), key=lambda e: e[2])
    assert len(entries) == 3
    for arrival, _, _, event in entries:
        receiver = int(event.envelope.receiver.split("/")[0])
        begins, departure = departure, departure + size / (1000.0 / slow[node.index])
        there = begins + size / (1000.0 / max(slow[node.index], slow[receiver]))
        assert arrival == pytest.approx(there + latency[node.index][receiver])
