"""Graphs that will not do: refused by the key, before a folder is made and before any other method of a table runs."""

import pytest
from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.methods import methods
from pushcen.simulation import NeighbourOptions
from tests.simulation.worlds import run

TWO_WAY = ("swift", "d-psgd", "choco", "moniqua")
ALL = [name for name, method in methods().items() if method.needs_graph]


def pushcen(*words):
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.mark.parametrize("command", ["simulate --method", "compare --methods pushcen,"])
@pytest.mark.parametrize("name", ALL)
def test_a_graph_that_does_not_fit_is_refused_by_its_key_before_anything_is_made(tmp_path, command, name):
    one_way, apart = tmp_path / "one-way.txt", tmp_path / "apart.txt"
    one_way.write_text("0 1\n1 2\n2 0\n1 0\n")
    apart.write_text("0 1\n1 0\n")  # and nobody for client 2
    wrong = {"degree=9": "neighbours.degree = 9: must be a whole number from 2 to 2", f"graph={apart}": "2 pushes to"}
    if name == "a2cid2":
        wrong[f"graph={apart}"] = "the graph falls apart"
    if name in TWO_WAY:
        wrong |= {"graph=ring": "neighbours.graph = 'ring': edge 0 -> 1 has no way back: "}
        wrong |= {f"graph={one_way}": f"neighbours.graph = '{one_way}': edge 1 -> 2 has no way back: "}
    for setting, told in wrong.items():
        words = (command + " " + name).replace(", ", ",").split()
        more = ["--clients", 3, "--set", "participation.delayed=0", "--set", f"neighbours.{setting}"]
        result = pushcen(*words, *more, "--runs", tmp_path / "runs")
        assert result.exit_code == 2, result.output
        assert told in result.stderr
        assert f"neighbours.{setting.partition('=')[0]} = " in result.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("graph", ["ring", "k-out", "exponential", "star", "small-world", "complete"])
def test_two_clients_have_one_graph_whatever_it_is_called(graph):
    options = NeighbourOptions(kind="graph", graph=graph)
    assert options.timed_graph(["0", "1"], 0, None, 1.0).fixed == {"0": ("1",), "1": ("0",)}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("clients", [1, 2])
def test_methods_on_a_graph_learn_with_one_client_and_with_two(name, clients):
    summary = run(method=methods()[name](), clients=clients, neighbours=NeighbourOptions(kind="graph"), horizon=4.0)
    assert summary["final"]["accuracy"] > 0.7
    assert (summary["traffic"]["messages_sent"] > 0) == (clients == 2)
