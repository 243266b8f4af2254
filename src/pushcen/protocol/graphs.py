"""Fixed directed graphs, and coefficients on them: Metropolis weights, and SWIFT's.

A graph is a plain mapping: every name with the names it pushes to. networkx is imported when one is built.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

from pushcen.checks import check_count, check_number
from pushcen.errors import OptionError
from pushcen.protocol.messages import UNIT

Edges = dict[str, tuple[str, ...]]


def ring(names: Sequence[str]) -> Edges:
    """Return a graph on which each pushes to the next one.

    >>> ring(["a", "b", "c"])
    {'a': ('b',), 'b': ('c',), 'c': ('a',)}
    """
    import networkx as nx

    return _edges(nx.cycle_graph(len(names), create_using=nx.DiGraph), names)


def k_out(names: Sequence[str], k: int, rng: Random) -> Edges:
    """Return a graph on which each pushes to `k` others, drawn at random once."""
    from networkx.generators.directed import random_uniform_k_out_graph

    check_count("k", k, 1, len(names) - 1)  # one less than there are peers
    graph = random_uniform_k_out_graph(len(names), k, self_loops=False, with_replacement=False, seed=rng)
    return _edges(graph, names)


def exponential(names: Sequence[str]) -> Edges:
    """Return a graph on which each pushes to those 1, 2, 4, 8, ... places further on.

    >>> exponential(["a", "b", "c", "d", "e"])["a"]
    ('b', 'c', 'e')
    """
    import networkx as nx

    steps = [2**i for i in range(len(names).bit_length()) if 2**i < len(names)]
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(names)))
    graph.add_edges_from((i, (i + step) % len(names)) for i in range(len(names)) for step in steps)
    return _edges(graph, names)


def star(names: Sequence[str]) -> Edges:
    """Return a graph on which the first pushes to all others, and they to it.

    >>> star(["hub", "a", "b"])
    {'hub': ('a', 'b'), 'a': ('hub',), 'b': ('hub',)}
    """
    import networkx as nx

    return _edges(nx.star_graph(max(0, len(names) - 1)).to_directed(), names)


def small_world(names: Sequence[str], k: int, p: float, rng: Random) -> Edges:
    """Return Watts and Strogatz's graph: `k` nearest on a ring, each edge rewired with probability `p`; both ways."""
    import networkx as nx

    check_count("k", k, 2, len(names) - 1)
    check_number("p", p, 0, 1)
    return _edges(nx.connected_watts_strogatz_graph(len(names), k, p, seed=rng).to_directed(), names)


def parse(lines: Iterable[str], names: Sequence[str]) -> Edges:
    """Read a graph of lines `from to`; `#` starts a comment.

    >>> parse(["a b", "b a  # and back"], ["a", "b"])
    {'a': ('b',), 'b': ('a',)}
    """
    edges: dict[str, list[str]] = {name: [] for name in names}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or words[0] == words[1] or not {*words} <= edges.keys():
            raise OptionError(f"graph, line {number}: {line.strip()!r}: must be two different names of peers")
        if words[1] in edges[words[0]]:
            raise OptionError(f"graph, line {number}: {line.strip()!r}: this edge was there before")
        edges[words[0]].append(words[1])
    return {name: tuple(targets) for name, targets in edges.items()}


def from_file(path: Path, names: Sequence[str]) -> Edges:
    """Read a graph from a text file (see `parse`)."""
    try:
        return parse(path.read_text(encoding="utf-8").splitlines(), names)
    except OSError as error:
        raise OptionError(f"path = {str(path)!r}: {error.strerror}") from error


def check_connected(edges: Mapping[str, Sequence[str]], *, strict: bool = True) -> None:
    """Refuse a graph on which somebody cannot be reached by somebody else; not `strict`: warn.

    >>> check_connected({"a": ("b",), "b": ()})
    Traceback (most recent call last):
    pushcen.errors.OptionError: graph: not strongly connected: no way leads from b to a, so they cannot agree
    """
    import networkx as nx

    graph = nx.DiGraph(edges)
    parts = list(nx.strongly_connected_components(graph))
    if len(parts) <= 1:
        return
    start, goal = next(
        (min(one), min(other))
        for one in parts
        for other in parts
        if one is not other and not nx.has_path(graph, min(one), min(other))
    )
    message = f"graph: not strongly connected: no way leads from {start} to {goal}, so they cannot agree"
    if strict:
        raise OptionError(message)
    warnings.warn(message, stacklevel=2)


def check_two_way(edges: Mapping[str, Sequence[str]], name: str, who: str) -> None:
    """Refuse a graph on which an edge out of `name` has no way back, which `who` needs.

    >>> check_two_way({"a": ("b",), "b": ()}, "a", "SWIFT")
    Traceback (most recent call last):
    pushcen.errors.OptionError: graph: edge a -> b has no way back: SWIFT needs both directions; ...
    """
    for other in edges[name]:
        if name not in edges.get(other, ()):
            raise OptionError(
                f"graph: edge {name} -> {other} has no way back: {who} needs both directions; must be small-world, "
                "star or complete, or a graph of your own that has them (docs/simulation.md#graphs)"
            )


def metropolis_weights(edges: Mapping[str, Sequence[str]], name: str, scale: float = 1.0) -> dict[str, int]:
    """Return what the neighbours of `name` weigh, in quanta of a UNIT; its own model has the rest.

    It is `scale` / (1 + the larger degree of both ends), the same in both directions: all rows and columns sum to one.

    >>> weights = metropolis_weights(star(["hub", "a", "b", "c"]), "a")
    >>> {other: weight / UNIT for other, weight in weights.items()}
    {'hub': 0.25}
    """
    mine, unit = len(edges[name]), int(scale * UNIT)
    return {other: unit // (1 + max(mine, len(edges[other]))) for other in edges[name]}


def swift_coefficients(edges: Mapping[str, Sequence[str]]) -> dict[str, dict[str, int]]:
    """Return SWIFT's weights of each client's neighbours, in quanta of a UNIT; its own model has the rest.

    Largest degree first: a client shares the rest of its unit evenly over its edges that are not fixed and itself;
    of two of the same degree the smaller offer holds. Edges go both ways.

    >>> rows = swift_coefficients(star(["hub", "a", "b", "c"]))
    >>> {other: weight / UNIT for other, weight in rows["hub"].items()}, rows["a"]["hub"] / UNIT
    ({'a': 0.25, 'b': 0.25, 'c': 0.25}, 0.25)
    """
    for name in edges:
        check_two_way(edges, name, "SWIFT")
    fixed: dict[str, dict[str, Fraction]] = {name: {} for name in edges}
    for degree in sorted({len(others) for others in edges.values()}, reverse=True):
        group = [name for name in edges if len(edges[name]) == degree]
        offers = {
            name: (1 - sum(fixed[name].values(), Fraction(0))) / (degree - len(fixed[name]) + 1) for name in group
        }
        for name in group:
            for other in edges[name]:
                if other not in fixed[name]:
                    fixed[name][other] = fixed[other][name] = min(offers[name], offers.get(other, offers[name]))
    return {name: {other: int(fixed[name][other] * UNIT) for other in edges[name]} for name in edges}


def _edges(graph: Any, names: Sequence[str]) -> Edges:
    return {name: tuple(names[other] for other in sorted(graph.successors(i))) for i, name in enumerate(names)}
