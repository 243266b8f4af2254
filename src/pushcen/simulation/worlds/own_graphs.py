"""Graphs that a user brings: one, or several that take turns, from a file; or from a function of the time."""

import bisect
import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from pushcen.errors import OptionError
from pushcen.learning.mistakes import told
from pushcen.locate import locate
from pushcen.protocol.graphs import Edges
from pushcen.simulation.worlds.sources import fingerprint, is_function, read_json, read_npz, read_text
from pushcen.units import Measured

KEY = "neighbours.graph"
HOW = "A graph of your own: neighbours.graph = FILE, of lines 'from to', or module:function (docs/simulation.md#graphs)"


class TimedGraph(Protocol):
    """Who may push to whom, at every moment."""

    @property
    def fixed(self) -> Edges | None:
        """The graph, if it never changes."""

    def at(self, now: float) -> Edges:
        """Return the graph at a moment: the same object as long as it is the same graph."""

    def union(self, horizon: float) -> Edges:
        """Return all edges that there are before the horizon, or, of a function, in its first graphs."""


class GraphSequence:
    """Graphs from given times on, the first from 0 on; again from the beginning after `period`, if there is one.

    >>> graphs = GraphSequence([0.0, 5.0], [{"0": ("1",), "1": ()}, {"0": (), "1": ("0",)}], period=8.0)
    >>> [graphs.at(now)["0"] for now in (4.9, 5.0, 8.0, 13.5)]
    [('1',), (), ('1',), ()]
    """

    def __init__(self, times: Sequence[float], graphs: Sequence[Edges], period: float = 0.0) -> None:
        self._times = list(times)
        self._graphs = list(graphs)
        self._period = period

    @property
    def fixed(self) -> Edges | None:
        """The graph, if there is only one."""
        return self._graphs[0] if len(self._graphs) == 1 else None

    def at(self, now: float) -> Edges:
        """Return the graph at a moment."""
        within = math.fmod(now, self._period) if self._period else now
        return self._graphs[bisect.bisect_right(self._times, within) - 1]

    def union(self, horizon: float) -> Edges:
        """Return all edges that there are before the horizon."""
        return _together(graph for time, graph in zip(self._times, self._graphs, strict=True) if time <= horizon)


class GraphFunction:
    """The graph that a function of (time, clients, seed) returns as a list of (from, to); asked every `every`."""

    _LOOKED = 20  # graphs that are looked at before anything happens

    def __init__(self, name: str, names: Sequence[str], seed: int, every: float) -> None:
        self._said = f"{KEY} = {name!r}"
        self._function = locate(name, KEY)
        if not callable(self._function):
            raise OptionError(f"{self._said}: {self._function!r:.80} is no function")
        self._names, self._seed, self._every = names, seed, every
        self._number, self._graph = 0, self._ask(0)
        if self._ask(0) != self._graph:
            raise OptionError(f"{self._said}: must return the same edges for the same time, clients and seed")

    @property
    def fixed(self) -> Edges | None:
        """None: it may change at any time."""
        return None

    def at(self, now: float) -> Edges:
        """Return the graph at a moment."""
        number = math.floor(now / self._every)
        if number != self._number:
            self._number, self._graph = number, self._ask(number)
        return self._graph

    def union(self, horizon: float) -> Edges:
        """Return all edges of its first graphs."""
        return _together(self._ask(n) for n in range(min(self._LOOKED, math.floor(horizon / self._every) + 1)))

    def _ask(self, number: int) -> Edges:
        time = number * self._every
        try:
            edges = self._function(time, len(self._names), self._seed)
            edges = edges.tolist() if hasattr(edges, "tolist") else list(edges)  # NumPy's, or any other pairs
        except Exception as error:
            raise OptionError(f"{self._said}: at time {time:g}: {told(error)}") from error
        return _edges(edges, self._names, f"{self._said}: at time {time:g}")


def is_own(graph: str) -> bool:
    """Return whether a graph is a file or a function, by the look of it; names that come along have no dot or slash.

    >>> is_own("mine.json"), is_own("small-world"), is_own("mine:graph")
    (True, False, True)
    """
    return is_function(graph) or "." in graph or "/" in graph


def graph_fingerprint(graph: str) -> str:
    """Return what tells the contents of a graph's file, or of its function's, from all others."""
    try:
        return fingerprint(graph, KEY)
    except OptionError as error:
        raise OptionError(f"{error}. {HOW}") from error


def own_graph(
    graph: str, names: Sequence[str], seed: int, every: float, time_unit: Fraction | None
) -> GraphSequence | GraphFunction:
    """Return the graph in a file (text, JSON or npz), or that of a function."""
    if is_function(graph):
        return GraphFunction(graph, names, seed, every)
    path, said = Path(graph), f"{KEY} = {graph!r}"
    if path.suffix == ".json":
        return _json(read_json(path, said), names, said, time_unit)
    if path.suffix == ".npz":
        return _npz(path, names, said)
    lines = [line.partition("#")[0].replace(",", " ").split() for line in read_text(path, said).splitlines()]
    return GraphSequence([0.0], [_edges([line for line in lines if line], names, said)])


def _json(found: Any, names: Sequence[str], said: str, time_unit: Fraction | None) -> GraphSequence:
    found = {"edges": found} if isinstance(found, list) else found
    if not isinstance(found, dict) or found.keys() not in ({"edges"}, {"graphs"}, {"graphs", "period"}):
        raise OptionError(f"{said}: must be an object with edges, or with graphs and perhaps a period")
    if "edges" in found:
        return GraphSequence([0.0], [_edges(found["edges"], names, said)])
    graphs = found["graphs"]
    if not isinstance(graphs, list) or not all(isinstance(g, dict) and g.keys() == {"time", "edges"} for g in graphs):
        raise OptionError(f"{said}: graphs: must be a list of objects with time and edges")
    times = [_time(one["time"], time_unit, f"{said}: graph {at}: time") for at, one in enumerate(graphs)]
    period = _time(found["period"], time_unit, f"{said}: period") if "period" in found else None
    edges = [_edges(one["edges"], names, f"{said}: graph {at}") for at, one in enumerate(graphs)]
    return _sequence(times, edges, period, said)


def _npz(path: Path, names: Sequence[str], said: str) -> GraphSequence:
    found = read_npz(path, said, {"edges": 2}, {"times": 1, "graph": 1, "period": 0})
    edges = found["edges"]
    if edges.shape[1:] != (2,) or edges.dtype.kind not in "iu":
        raise OptionError(f"{said}: edges: must be whole numbers, E x 2")
    if "times" not in found:
        return GraphSequence([0.0], [_edges(edges.tolist(), names, said)])
    of, times = found.get("graph"), [float(time) for time in found["times"]]
    if of is None or of.shape != edges.shape[:1] or of.dtype.kind not in "iu" or ((of < 0) | (of >= len(times))).any():
        raise OptionError(f"{said}: graph: must say for each edge in which of the {len(times)} graphs it is, from 0 on")
    graphs = [_edges(edges[of == at].tolist(), names, f"{said}: graph {at}") for at in range(len(times))]
    return _sequence(times, graphs, float(found["period"]) if "period" in found else None, said)


def _sequence(times: list[float], graphs: list[Edges], period: float | None, said: str) -> GraphSequence:
    if not times or times[0] != 0 or any(one >= other for one, other in itertools.pairwise(times)):
        raise OptionError(f"{said}: times of graphs must begin with 0, and rise: {times[:8]}")
    if period is not None and period <= times[-1]:
        raise OptionError(f"{said}: period = {period:g}: must be longer than the time of the last graph, {times[-1]:g}")
    return GraphSequence(times, graphs, period or 0.0)


def _edges(pairs: Any, names: Sequence[str], said: str) -> Edges:
    """Return the graph of pairs (from, to), each a client's number; or refuse it."""
    found: dict[str, dict[str, None]] = {name: {} for name in names}
    if not isinstance(pairs, list):
        raise OptionError(f"{said}: edges: must be a list of pairs, from and to")
    for number, pair in enumerate(pairs):
        ends = [str(end) for end in pair] if isinstance(pair, list | tuple) and len(pair) == 2 else []
        if not ends or ends[0] == ends[1] or not found.keys() >= set(ends):
            what = f"must be two different clients, by their numbers from 0 to {len(names) - 1}"
            raise OptionError(f"{said}: edge {number}: {pair!r:.80}: {what}")
        if ends[1] in found[ends[0]]:
            raise OptionError(f"{said}: edge {number}: {pair!r:.80}: this edge was there before")
        found[ends[0]][ends[1]] = None
    return {name: tuple(targets) for name, targets in found.items()}


def _time(value: Any, time_unit: Fraction | None, said: str) -> float:
    if isinstance(value, str):
        try:
            return Measured("time").number(value, time_unit)
        except OptionError as error:
            raise OptionError(f"{said}: {error}") from None
    if type(value) not in (int, float) or not 0 <= value < 1e300:
        raise OptionError(f"{said}: {value!r:.80}: must be a finite number, 0 or more")
    return float(value)


def _together(graphs: Iterable[Edges]) -> Edges:
    found: dict[str, dict[str, None]] = {}
    for graph in graphs:
        for name, targets in graph.items():
            found.setdefault(name, {}).update(dict.fromkeys(targets))
    return {name: tuple(targets) for name, targets in found.items()}
