"""Who pushes to whom; what becomes of a message between two clients, and when."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from pushcen.checks import check_choice, check_count, check_number, check_order
from pushcen.errors import OptionError, called
from pushcen.protocol import BoundedView, FixedGraph, NeighbourChoice, Online, RandomNeighbours, graphs
from pushcen.protocol.graphs import Edges

NOTICES = ("sure", "doubt", "silent")
KINDS = ("random", "view", "graph")
GRAPHS = ("ring", "k-out", "exponential", "star", "small-world", "complete")


@dataclass(frozen=True)
class NetworkOptions:
    """How messages travel. As it stands, they arrive at once.

    A message takes `latency`, plus up to `jitter`, plus its bytes over `bandwidth` (bytes per unit of time, 0: no
    limit); a client sends one message after the other. If it pushes again before all have begun to leave, the others
    leave first; without `backlog` they never do, and their mass returns. A share `reorder` of the messages is held back
    by up to `hold` more, and a share `duplicate` arrives a second time, up to `hold` later. A share `loss` is lost.
    What the sender learns of that, or of a receiver that has gone offline, is `notice`:

    - `sure`: that nothing arrived. Its mass returns.
    - `doubt`: nothing. Answers get lost, too, with the same probability.
    - `silent`: there are no answers. The sender takes everything for delivered.
    """

    latency: float = 0.0
    jitter: float = 0.0
    bandwidth: float = 0.0
    backlog: bool = True
    loss: float = 0.0
    notice: str = "sure"
    duplicate: float = 0.0
    reorder: float = 0.0
    hold: float = 1.0

    def __post_init__(self) -> None:
        for name in ("latency", "jitter", "bandwidth"):
            check_number(name, getattr(self, name))
        check_number("hold", self.hold, above=True)
        for name in ("loss", "duplicate", "reorder"):
            check_number(name, getattr(self, name), 0, 1)
        check_choice("notice", self.notice, NOTICES)
        if not self.backlog and not self.bandwidth:
            raise OptionError("backlog = False: only where bandwidth is limited does anything wait to be sent")
        if not self.backlog and self.notice == "silent":
            raise OptionError("backlog = False: must be True where notice = 'silent', which takes all for delivered")

    @property
    def instant(self) -> bool:
        """Whether every message that arrives does so at once, and only once."""
        return not (self.latency or self.jitter or self.bandwidth or self.duplicate or self.reorder)

    def way(self, rng: Random) -> float:
        """Draw the time that a message is under way, once it has left its sender."""
        time = self.latency + self.jitter * rng.random() if self.jitter else self.latency
        if self.reorder and rng.random() < self.reorder:
            time += self.hold * rng.random()
        return time


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
        check_choice("kind", self.kind, KINDS)
        check_choice("graph", self.graph, GRAPHS)
        check_count("size", self.size, 1)
        check_count("bound", self.bound)
        check_order("size", self.size, "bound", self.bound)
        check_count("degree", self.degree, 1)
        check_number("rewire", self.rewire, 0, 1)

    def edges(self, names: Sequence[str], rng: Random) -> Edges | None:
        """Return the graph; None if there is none. One client alone has no edges.

        >>> NeighbourOptions(kind="graph", graph="ring").edges(["0", "1", "2"], Random(0))
        {'0': ('1',), '1': ('2',), '2': ('0',)}
        """
        if self.kind != "graph":
            return None
        with called(k="neighbours.degree", p="neighbours.rewire", path="neighbours.file"):
            edges = self._graph(names, rng)
        graphs.check_connected(edges, strict=False)
        return edges

    def choice(self, edges: Edges | None, online: Online[str], rng: Random) -> NeighbourChoice[str]:
        """Return what draws receivers among those online; `edges` are what the function of that name returned."""
        if edges is not None:
            return FixedGraph(edges, online, rng)
        if self.kind == "view":
            return BoundedView(online, rng, self.size, self.bound)
        return RandomNeighbours(online, rng)

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
