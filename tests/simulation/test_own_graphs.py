"""Graphs of one's own: from files and functions, one or several that take turns; broken ones are refused."""

import json
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pushcen.config import ConfigError, load_config
from pushcen.errors import OptionError
from pushcen.methods import PushSum, Swift
from pushcen.simulation import NeighbourOptions, World
from tests.simulation.worlds import run

NAMES = ["0", "1", "2"]
RING = [[0, 1], [1, 2], [2, 0]]
BACK = [[1, 0], [2, 1], [0, 2]]
FUNCTION = """
def turning(time, clients, seed):
    step = 1 + (int(time) + seed) % (clients - 1)
    return [(client, (client + step) % clients) for client in range(clients)]

def array(time, clients, seed):
    import numpy
    return numpy.array(turning(time, clients, seed))

def wild(time, clients, seed, calls=[]):
    calls.append(1)
    return [(0, 1 + len(calls) % 2)]

def broken(time, clients, seed):
    return [(0, clients)]

def fails(time, clients, seed):
    raise KeyError(time)

nothing = 3
"""


def graph(value, horizon=10.0, seed=0, time_unit=None, names=NAMES, **options):
    section = NeighbourOptions(kind="graph", graph=str(value), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return section.timed_graph(names, seed, time_unit, horizon)


def written(path, thing):
    path.write_text(thing if isinstance(thing, str) else json.dumps(thing))
    return path


@pytest.fixture
def function(tmp_path):
    name = f"own_{abs(hash(tmp_path)) % 10**9}"
    written(tmp_path / f"{name}.py", FUNCTION)
    return lambda thing: f"{tmp_path / name}.py:{thing}"


def test_all_formats_are_the_same_graph(tmp_path):
    wanted = {"0": ("1",), "1": ("2",), "2": ("0",)}
    np.savez(tmp_path / "g.npz", edges=np.array(RING))
    for file in (
        written(tmp_path / "g.txt", "0 1\n1 2  # a comment\n\n2 0\n"),
        written(tmp_path / "g.csv", "0,1\n1,2\n2,0\n"),
        written(tmp_path / "list.json", RING),
        written(tmp_path / "g.json", {"edges": [["0", "1"], ["1", "2"], ["2", "0"]]}),
        tmp_path / "g.npz",
    ):
        assert graph(file).fixed == wanted


def test_graphs_take_turns(tmp_path):
    several = {"graphs": [{"time": 0, "edges": RING}, {"time": 4, "edges": BACK}]}
    once = graph(written(tmp_path / "once.json", several))
    again = graph(written(tmp_path / "again.json", {**several, "period": 6}))
    assert once.fixed is None
    assert [once.at(now)["0"] for now in (0, 3.9, 4, 6, 11)] == [("1",), ("1",), ("2",), ("2",), ("2",)]
    assert [again.at(now)["0"] for now in (0, 3.9, 4, 6, 11)] == [("1",), ("1",), ("2",), ("1",), ("2",)]
    assert again.at(1) is again.at(7)
    np.savez(tmp_path / "g.npz", edges=RING + BACK, graph=[0] * 3 + [1] * 3, times=[0, 4], period=6)
    assert [graph(tmp_path / "g.npz").at(now) for now in (1, 5, 7)] == [again.at(now) for now in (1, 5, 7)]
    in_units = {"graphs": [{"time": "0 s", "edges": RING}, {"time": "2 min", "edges": BACK}]}
    from fractions import Fraction

    assert graph(written(tmp_path / "u.json", in_units), time_unit=Fraction(30)).at(4.0)["0"] == ("2",)
    with pytest.raises(OptionError, match=r"graph 0: time: '0 s': needs time_unit"):
        graph(tmp_path / "u.json")


def test_a_function_is_asked_for_the_graph_of_each_moment(function):
    names = [str(i) for i in range(5)]
    found = graph(function("turning"), names=names, seed=2, every=2.0)
    for now in (0.0, 1.9, 2.0, 7.5, 3.0, 0.5):
        step = 1 + (int(now // 2 * 2) + 2) % 4
        assert found.at(now) == {str(i): (str((i + step) % 5),) for i in range(5)}
    assert found.at(3.0) is found.at(2.5)
    assert graph(function("array"), names=names, seed=2, every=2.0).at(3.0) == found.at(3.0)


HOW = re.escape("A graph of your own: neighbours.graph = FILE")
WRONG = {
    "unknown.txt": ("0 9\n", "edge 0: .*: must be two different clients, by their numbers from 0 to 2"),
    "same.txt": ("0 1\n1 1\n", "edge 1: .*: must be two different clients"),
    "three.txt": ("0 1 2\n", "edge 0: .*: must be two different clients"),
    "twice.txt": ("0 1\n0 1\n", "edge 1: .*: this edge was there before"),
    "number.json": ("3", "must be an object with edges, or with graphs"),
    "key.json": ({"edge": RING}, "must be an object with edges, or with graphs"),
    "list.json": ({"edges": {"0": [1]}}, "edges: must be a list of pairs"),
    "deep.json": ({"edges": [[[0], 1]]}, "edge 0: .*: must be two different clients"),
    "true.json": ({"edges": [[True, 0]]}, "edge 0: .*: must be two different clients"),
    "none.json": ({"graphs": []}, "times of graphs must begin with 0"),
    "late.json": ({"graphs": [{"time": 1, "edges": RING}]}, "times of graphs must begin with 0"),
    "fall.json": (
        {"graphs": [{"time": t, "edges": RING} for t in (0, 5, 5)]},
        "times of graphs must begin with 0, and rise",
    ),
    "minus.json": ({"graphs": [{"time": -1, "edges": RING}]}, "graph 0: time: -1: must be a finite number"),
    "keys.json": ({"graphs": [{"edges": RING}]}, "graphs: must be a list of objects with time and edges"),
    "short.json": ({"graphs": [{"time": 0, "edges": RING}], "period": 0}, "period = 0: must be longer than"),
    "inner.json": ({"graphs": [{"time": 0, "edges": [[0, 5]]}]}, "graph 0: edge 0: "),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_broken_graph_is_refused_and_told_how_to_bring_one(tmp_path, name):
    content, complaint = WRONG[name]
    with pytest.raises(OptionError, match=rf"neighbours\.graph = '.*{name}': {complaint}.*\. {HOW}"):
        graph(written(tmp_path / name, content))


def test_broken_npz_graphs_and_missing_files_are_refused(tmp_path):
    for arrays, complaint in (
        ({"edges": np.zeros((2, 3), int)}, "edges: must be whole numbers, E x 2"),
        ({"edges": np.zeros((2, 2))}, "edges: must be whole numbers"),
        ({"edges": np.array(RING), "times": [0.0]}, "graph: must say for each edge"),
        ({"edges": np.array(RING), "times": [0.0], "graph": [0, 1, 0]}, "graph: must say for each edge"),
        ({"edge": np.array(RING)}, "has no array edges; it has edge"),
    ):
        np.savez(tmp_path / "g.npz", **arrays)
        with pytest.raises(OptionError, match=complaint):
            graph(tmp_path / "g.npz")
    for missing in ("none.txt", "none.json", "none.npz"):
        with pytest.raises(OptionError, match=rf"none.*: No such file.*{HOW}"):
            graph(tmp_path / missing)


@pytest.mark.parametrize(("thing", "complaint"), [
    ("wild", "must return the same edges for the same time, clients and seed"),
    ("broken", "at time 0: edge 0: .0, 3.: must be two different clients"),
    ("fails", "at time 0: KeyError: 0"),
    ("nothing", "3 is no function"),
    ("missing", "has no missing"),
])  # fmt: skip
def test_a_function_that_is_none_is_refused(function, thing, complaint):
    with pytest.raises(OptionError, match=rf"neighbours\.graph = .*{complaint}.*{HOW}"):
        graph(function(thing))


def test_a_name_that_is_none_says_how_to_bring_a_graph():
    with pytest.raises(ConfigError, match=rf"neighbours\.graph = 'rign': must be one of ring, .*\. {HOW}"):
        load_config({"neighbours": {"graph": "rign"}})
    with pytest.raises(ConfigError, match=r"neighbours\.graph = 'mine.json': needs neighbours.kind = 'graph'"):
        load_config({"neighbours": {"graph": "mine.json", "kind": "view"}})
    with pytest.raises(ConfigError, match=rf"neighbours\.graph = 'none.txt': No such file or directory\. {HOW}"):
        load_config({"neighbours": {"graph": "none.txt"}})
    with pytest.raises(OptionError, match=rf"neighbours\.degree = 9.*{HOW}"):
        graph("k-out", degree=9)


def test_a_graph_on_which_some_cannot_be_reached_is_warned_of(tmp_path):
    """As of the named ones; of several it counts what they are together."""
    section = NeighbourOptions(kind="graph", graph=str(written(tmp_path / "g.txt", "0 1\n1 0\n2 0\n")))
    with pytest.warns(UserWarning, match=rf"not strongly connected: no way leads from .* to .*{HOW}"):
        section.timed_graph(NAMES, 0, None, 10.0)
    halves = {"graphs": [{"time": 0, "edges": RING[:2]}, {"time": 4, "edges": RING[2:]}], "period": 8}
    section = NeighbourOptions(kind="graph", graph=str(written(tmp_path / "g.json", halves)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        section.timed_graph(NAMES, 0, None, 10.0)


def test_a_config_that_names_a_graph_gets_it(tmp_path):
    file = str(written(tmp_path / "g.txt", "0 1\n1 2\n2 0\n"))
    config = load_config({"clients": 3, "neighbours": {"graph": file}})
    assert config.neighbours.kind == "graph"
    assert config.timed_graph().fixed == {"0": ("1",), "1": ("2",), "2": ("0",)}


def test_swift_runs_on_a_graph_of_ones_own_and_refuses_one_that_changes(tmp_path):
    both = [[i, j] for i in range(4) for j in range(4) if i != j]
    file = written(tmp_path / "g.json", {"edges": both})
    options = {"clients": 4, "horizon": 2.0, "method": Swift()}
    assert run(neighbours=NeighbourOptions(kind="graph", graph=str(file)), **options)["status"] == "finished"
    written(file, {"graphs": [{"time": 0, "edges": both}, {"time": 1, "edges": both[1:]}]})
    with pytest.raises(OptionError, match=r"needs a fixed graph.*a file of edges that stay"):
        run(neighbours=NeighbourOptions(kind="graph", graph=str(file)), **options)
    written(file, {"edges": [[0, 1], [1, 2], [2, 3], [3, 0]]})
    with pytest.raises(OptionError, match=r"has no way back: SWIFT needs both directions.*graphs"):
        run(neighbours=NeighbourOptions(kind="graph", graph=str(file)), **options)


def test_pushes_go_along_the_edges_of_their_time(world_of, tmp_path, function):
    ring, back = ([[i, (i + step) % 6] for i in range(6)] for step in (1, 5))
    several = {"graphs": [{"time": 0, "edges": ring}, {"time": 1.5, "edges": back}], "period": 3}
    for value in (str(written(tmp_path / "g.json", several)), function("turning")):
        section = NeighbourOptions(kind="graph", graph=value, every=1.0)
        engine = world_of(clients=6, horizon=9.0, method=PushSum(receivers=2), neighbours=section)
        seen = []
        send = engine.network.send
        engine.network.send = lambda node, envelopes, send=send, seen=seen, engine=engine: (
            seen.extend((engine.now, e.sender, e.receiver) for e in envelopes),
            send(node, envelopes),
        )
        while not engine.over:
            engine.act()
        found = engine.world.timed_graph()
        pushes = [(now, a.split("/")[0], b.split("/")[0]) for now, a, b in seen]
        assert len(pushes) > 40
        assert len({(a, b) for _, a, b in pushes}) > 6, "the graph changed"
        assert all(b in found.at(now)[a] for now, a, b in pushes)


def test_the_world_with_another_function_is_another_world(function):
    value = function("turning")
    world = World(PushSum(), neighbours=NeighbourOptions(kind="graph", graph=value), clients=4)
    before = world.identity()
    path = Path(value.rpartition(":")[0])
    path.write_text(path.read_text() + "# changed\n")
    after = replace(world).identity()
    assert {key for key in after if after[key] != before[key]} == {"files.neighbours.graph"}
