"""Who pushes to whom; what becomes of a message between two clients, and when."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random

from pushcen.checks import check_choice, check_count, check_number, check_order
from pushcen.errors import OptionError, called
from pushcen.protocol import BoundedView, FixedGraph, NeighbourChoice, Online, RandomNeighbours, graphs
from pushcen.protocol.graphs import Edges
from pushcen.simulation.worlds.own_graphs import HOW, GraphSequence, TimedGraph, is_own, own_graph
from pushcen.simulation.worlds.speeds import LOGNORMAL, NAMED, check_speeds
from pushcen.streams import stream
from pushcen.units import PseudoRate, PseudoTime, read_bandwidth

NOTICES = ("sure", "doubt", "silent")
KINDS = ("random", "view", "graph")
POLICIES = ("random", "priority", "bandit")
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

    Lines differ by `speeds`: a JSON file of measurements, `flash` (those that come along) or `lognormal:SIGMA` around
    `bandwidth`; `speeds_unit` says what a file's numbers are in, if not the usual one. A share of `stragglers` has
    lines `slowdown` times slower, both ways. `links` is a file with the bandwidth and latency of every link. A message
    leaves as fast as its sender's line lets it, and arrives as fast as the narrowest part of its way does.
    """

    latency: PseudoTime = 0.0
    jitter: PseudoTime = 0.0
    bandwidth: PseudoRate = 0.0
    backlog: bool = True
    loss: float = 0.0
    notice: str = "sure"
    duplicate: float = 0.0
    reorder: float = 0.0
    hold: PseudoTime = 1.0
    speeds: str = ""
    speeds_unit: str = ""
    stragglers: float = 0.0
    slowdown: float = 5.0
    links: str = ""

    def __post_init__(self) -> None:
        for name in ("latency", "jitter", "bandwidth"):
            check_number(name, getattr(self, name))
        check_number("hold", self.hold, above=True)
        for name in ("loss", "duplicate", "reorder", "stragglers"):
            check_number(name, getattr(self, name), 0, 1)
        check_choice("notice", self.notice, NOTICES)
        check_number("slowdown", self.slowdown, 1, 1e6)
        check_speeds("speeds", self.speeds, tuple(NAMED))
        if self.speeds.startswith(LOGNORMAL) and not self.bandwidth:
            raise OptionError(f"speeds = {self.speeds!r}: needs bandwidth, the median of them")
        if self.speeds_unit:
            if self.speeds.startswith(LOGNORMAL) or not self.speeds:
                raise OptionError(f"speeds_unit = {self.speeds_unit!r}: is read only where speeds is a file")
            try:
                read_bandwidth(f"1 {self.speeds_unit}")
            except OptionError:
                raise OptionError(f"speeds_unit = {self.speeds_unit!r}: must be a unit such as kB/s, kbit/s") from None
        if self.stragglers and not self.limited:
            raise OptionError(f"stragglers = {self.stragglers!r}: only where bandwidth is limited is a line slower")
        if not self.backlog and not self.limited:
            raise OptionError("backlog = False: only where bandwidth is limited does anything wait to be sent")
        if not self.backlog and self.notice == "silent":
            raise OptionError("backlog = False: must be True where notice = 'silent', which takes all for delivered")

    @property
    def instant(self) -> bool:
        """Whether every message that arrives does so at once, and only once."""
        return not (self.latency or self.jitter or self.limited or self.duplicate or self.reorder)

    @property
    def limited(self) -> bool:
        """Whether messages take time by their bytes, or by a file of links."""
        return bool(self.bandwidth or self.speeds or self.links)

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
    - `graph`: a directed graph: `graph` by name (with `degree`, and `rewire` for small-world), a file of its edges
      (text, JSON, npz), perhaps of several graphs that take turns, or a function of (time, clients, seed), by
      `module:function` or `file.py:function`, that is asked every `every`. `file` names a text file, too.

    Which of these are pushed to, if not all, is decided by `policy`:

    - `random`: all are equally likely.
    - `priority`: those whose labels are distributed most differently, and that were not pushed to for longest;
      `by_data` is what the first counts against the second.
    - `bandit`: those whose models have helped most, by the loss on a share of `validation` of the own training data,
      which is not trained on; each of them with probability `explore` somebody at random instead.
    """

    kind: str = "random"
    size: int = 20
    bound: int = 40
    graph: str = "small-world"
    degree: int = 4
    rewire: float = 0.1
    file: str = ""
    every: PseudoTime = 1.0
    policy: str = "random"
    by_data: float = 0.25
    explore: float = 0.25
    validation: float = 0.1

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        check_choice("policy", self.policy, POLICIES)
        check_number("by_data", self.by_data, 0, 1)
        check_number("explore", self.explore, 0, 1)
        check_number("validation", self.validation, 0, 1, above=True, below=True)
        if is_own(self.graph):
            if self.kind != "graph" or self.file:
                raise OptionError(f"graph = {self.graph!r}: needs kind = 'graph', and no file beside it")
        elif self.graph not in GRAPHS:
            raise OptionError(f"graph = {self.graph!r}: must be one of {', '.join(GRAPHS)}. {HOW}")
        check_number("every", self.every, 1e-6)
        check_count("size", self.size, 1)
        check_count("bound", self.bound)
        check_order("size", self.size, "bound", self.bound)
        check_count("degree", self.degree, 1)
        check_number("rewire", self.rewire, 0, 1)

    @property
    def held_out(self) -> float:
        """The share of the training data that clients keep for validation."""
        return self.validation if self.policy == "bandit" else 0.0

    def timed_graph(
        self, names: Sequence[str], seed: int, time_unit: Fraction | None, horizon: float
    ) -> TimedGraph | None:
        """Return the graph, at every moment; None if there is none. Warn of one on which some cannot be reached.

        >>> options = NeighbourOptions(kind="graph", graph="ring")
        >>> options.timed_graph(["0", "1", "2"], seed=0, time_unit=None, horizon=9.0).fixed
        {'0': ('1',), '1': ('2',), '2': ('0',)}
        """
        if self.kind != "graph":
            return None
        try:
            if is_own(self.graph):
                found: TimedGraph = own_graph(self.graph, names, seed, self.every, time_unit)
            else:
                with called(k="neighbours.degree", p="neighbours.rewire", path="neighbours.file"):
                    found = GraphSequence([0.0], [self._graph(names, stream(seed, "graph"))])
        except OptionError as error:
            raise OptionError(f"{error}. {HOW}") from error
        try:
            graphs.check_connected(found.union(horizon))
        except OptionError as error:
            warnings.warn(f"{error}. {HOW}", stacklevel=2)
        return found

    def choice(self, edges: Edges | None, online: Online[str], rng: Random) -> NeighbourChoice[str]:
        """Return what draws receivers among those online; `edges` are those of the graph, if there is one."""
        if edges is not None:
            return FixedGraph(edges, online, rng)
        if self.kind == "view":
            return BoundedView(online, rng, self.size, self.bound)
        return RandomNeighbours(online, rng)

    def _graph(self, names: Sequence[str], rng: Random) -> Edges:
        if self.file:
            return graphs.from_file(Path(self.file), names)
        if self.graph == "complete" or len(names) < 3:  # of two clients there is no other that is connected
            return {name: tuple(other for other in names if other != name) for name in names}
        if self.graph == "k-out":
            return graphs.k_out(names, self.degree, rng)
        if self.graph == "small-world":
            return graphs.small_world(names, self.degree, self.rewire, rng)
        return {"ring": graphs.ring, "exponential": graphs.exponential, "star": graphs.star}[self.graph](names)
