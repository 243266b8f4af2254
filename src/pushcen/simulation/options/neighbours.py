"""Who pushes to whom."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from pushcen.checks import check_choice, check_count, check_number, check_order
from pushcen.errors import called
from pushcen.protocol import graphs
from pushcen.protocol.graphs import Edges

KINDS = ("random", "view", "graph")
GRAPHS = ("ring", "k-out", "exponential", "star", "small-world", "complete")


@dataclass(frozen=True)
class NeighbourOptions:
    """How receivers are found, by `kind`.

    - `random`: drawn afresh at every push among those online (the paper).
    - `view`: from a view of `size` clients that changes slowly, and never meets more than `bound` in all.
    - `graph`: a fixed directed graph: `graph` by name (with `degree`, and `rewire` for small-world), or the edges in
      `file`, lines of `from to`.
    """

    kind: str = "random"
    size: int = 20
    bound: int = 40
    graph: str = "small-world"
    degree: int = 4
    rewire: float = 0.1
    file: str = ""

    def __post_init__(self) -> None:
        check_choice("neighbours.kind", self.kind, KINDS)
        check_choice("neighbours.graph", self.graph, GRAPHS)
        check_count("neighbours.size", self.size, 1)
        check_count("neighbours.bound", self.bound)
        check_order("neighbours.size", self.size, "neighbours.bound", self.bound)
        check_count("neighbours.degree", self.degree, 1)
        check_number("neighbours.rewire", self.rewire, 0, 1)

    def edges(self, names: Sequence[str], rng: Random) -> Edges | None:
        """Make the graph; None if there is none. One client alone has no edges.

        >>> NeighbourOptions(kind="graph", graph="ring").edges(["0", "1", "2"], Random(0))
        {'0': ('1',), '1': ('2',), '2': ('0',)}
        """
        if self.kind != "graph":
            return None
        with called(k="neighbours.degree", p="neighbours.rewire", path="neighbours.file"):
            edges = self._graph(names, rng)
        graphs.check_connected(edges, strict=False)
        return edges

    def _graph(self, names: Sequence[str], rng: Random) -> Edges:
        if self.file:
            return graphs.from_file(Path(self.file), names)
        if len(names) == 1:
            return {names[0]: ()}
        if self.graph == "complete":
            return {name: tuple(other for other in names if other != name) for name in names}
        if self.graph == "k-out":
            return graphs.k_out(names, self.degree, rng)
        if self.graph == "small-world":
            return graphs.small_world(names, self.degree, self.rewire, rng)
        return {"ring": graphs.ring, "exponential": graphs.exponential, "star": graphs.star}[self.graph](names)
