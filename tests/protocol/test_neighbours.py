"""Who a peer pushes to."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushcen.errors import OptionError
from pushcen.protocol import BoundedView, FixedGraph, Online, RandomNeighbours, graphs


def names(n):
    return [f"p{i}" for i in range(n)]


@given(st.integers(1, 60), st.integers(0, 20), st.integers(0, 99))
def test_afresh_draws_different_online_peers(n, k, seed):
    online = Online(names(n))
    drawn = RandomNeighbours(online, Random(seed)).draw("p0", k)
    assert len(set(drawn)) == len(drawn) == (min(k, n - 1) if k else n - 1)
    assert "p0" not in drawn
    assert set(drawn) <= set(online.names)


@given(st.integers(2, 60), st.integers(0, 10), st.integers(0, 99), st.data())
def test_a_view_meets_no_more_than_its_bound(n, k, seed, data):
    online = Online(names(n))
    view = BoundedView(online, Random(seed), size=5, bound=8, every=2)
    met, gone = set(), 0
    for _ in range(60):
        if data.draw(st.booleans()):
            name = data.draw(st.sampled_from(names(n)[1:]))
            gone += name in online
            online.remove(name) if name in online else online.add(name)
        drawn = view.draw("p0", k)
        assert len(set(drawn)) == len(drawn) <= min(k or 5, 5)
        assert "p0" not in drawn
        assert all(name in online for name in drawn)
        met |= set(drawn)
        [(_, known)] = view.save()
        assert len(set(known)) == len(known) <= 8
        assert set(drawn) <= set(known)
        assert drawn or len(online) == 1, "there is somebody to push to while anybody is online"
    assert len(met) <= 8 + gone


def test_a_view_outlives_those_that_it_knew():
    online = Online(names(100))
    view = BoundedView(online, Random(0))
    for at in range(3000):
        if at % 2:
            online.remove(online.names[1 + at % 99])
            online.add(f"new{at}")
        drawn = view.draw("p0", 10)
        assert len(drawn) == 10
        assert all(name in online for name in drawn)
    assert len(view.save()[0][1]) <= 40


def test_a_view_changes_slowly_and_finds_a_substitute_for_who_is_gone():
    online = Online(names(100))
    view = BoundedView(online, Random(0), size=10, bound=20, every=10)
    first = set(view.draw("p0", 0))
    later = set(view.draw("p0", 0))
    assert len(first & later) >= 9
    for name in later:
        online.remove(name)
    assert len(view.draw("p0", 0)) == 10, "ten others are met in their place"
    for _ in range(300):
        view.draw("p0", 3)
    assert len(view.draw("p0", 0)) <= 10


def test_bad_views_are_refused():
    with pytest.raises(OptionError, match=r"^size = 9: must be at most bound = 8"):
        BoundedView(Online(), Random(0), size=9, bound=8)
    with pytest.raises(OptionError, match=r"^every = 0"):
        BoundedView(Online(), Random(0), every=0)


def test_nobody_online_is_nobody_to_push_to():
    online = Online(["me"])
    for neighbours in (
        RandomNeighbours(online, Random(0)),
        BoundedView(online, Random(0)),
        FixedGraph({"me": ("gone",)}, online, Random(0)),
    ):
        assert neighbours.draw("me", 10) == []


def test_a_graph_offers_who_is_online():
    online = Online(["a", "b", "c"])
    graph = FixedGraph({"a": ("b", "c", "gone")}, online, Random(0))
    assert graph.draw("a", 0) == ["b", "c"]
    assert len(graph.draw("a", 1)) == 1


@pytest.mark.parametrize(
    "edges",
    [
        graphs.ring(names(7)),
        graphs.k_out(names(20), 5, Random(1)),
        graphs.exponential(names(12)),
        graphs.star(names(5)),
        graphs.small_world(names(20), 4, 0.3, Random(2)),
    ],
)
def test_every_kind_of_graph_is_connected_and_has_no_loops(edges):
    graphs.check_connected(edges)
    assert all(name not in others and len(set(others)) == len(others) for name, others in edges.items())


def test_a_graph_that_is_not_strongly_connected_is_an_error_or_a_warning():
    edges = {"a": ("b",), "b": ("c",), "c": ("b",)}
    with pytest.raises(OptionError, match=r"no way leads from [bc] to a"):
        graphs.check_connected(edges)
    with pytest.warns(UserWarning, match="not strongly connected"):
        graphs.check_connected(edges, strict=False)


def test_a_graph_from_a_file(tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text("# a ring\na b\nb a\n")
    assert graphs.from_file(path, ["a", "b"]) == {"a": ("b",), "b": ("a",)}
    for line, says in (("a a", "line 1"), ("a x", "two different names of peers"), ("a b\na b", "was there before")):
        path.write_text(line)
        with pytest.raises(OptionError, match=says):
            graphs.from_file(path, ["a", "b"])
    with pytest.raises(OptionError, match=r"path = .*No such file"):
        graphs.from_file(tmp_path / "none.txt", ["a"])
    with pytest.raises(OptionError, match=r"p = .* from 0 to 1"):
        graphs.small_world(names(5), 2, 1.5, Random(0))
