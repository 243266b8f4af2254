"""What a method is: rules for the protocol, an update for the learner."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pushcen.errors import OptionError
from pushcen.learning import Update
from pushcen.protocol import Fixed, Rules
from pushcen.protocol.graphs import check_two_way, metropolis_weights


@dataclass(frozen=True)
class Place:
    """A client's place: its name, the fixed graph if there is one, and what stands for the common first model."""

    me: str
    edges: Mapping[str, Sequence[str]] | None = None
    start: Any = None

    def neighbours(self, method: "Method") -> Sequence[str]:
        """Return whom a client pushes to on the fixed graph that its method needs; refuse a place that has none.

        >>> Place("a", {"a": ("b",), "b": ()}).neighbours(Method())
        ('b',)
        """
        if self.edges is None:
            raise OptionError(
                f"method.name = {method.name!r}: needs a fixed graph; neighbours.kind must be graph, and "
                "neighbours.graph a name, or a file of edges that stay"
            )
        if self.me not in self.edges:
            raise OptionError(f"neighbours: the graph has no {self.me}")
        if not self.edges[self.me] and len(self.edges) > 1:
            raise OptionError(
                f"neighbours: {self.me} pushes to nobody; {method.name} needs an edge out of every client"
            )
        return self.edges[self.me]

    def metropolis(self, method: "Method", scale: float = 1.0) -> Fixed:
        """Return Metropolis weights on the fixed two-way graph that a method needs; refuse a place that has none.

        Neighbours weigh `scale` / (1 + the larger degree of both ends).

        >>> from pushcen.methods import DPsgd
        >>> weights = Place("a", {"a": ("b",), "b": ("a",)}).metropolis(DPsgd())
        >>> weights.of(0, "b") == weights.own(0)
        True
        """
        self.neighbours(method)
        assert self.edges is not None
        check_two_way(self.edges, self.me, method.name)
        return Fixed(metropolis_weights(self.edges, self.me, scale))


@dataclass(frozen=True)
class Method:
    """One algorithm: a frozen dataclass whose fields are its options.

    `rules` is its protocol side (what may wait, what it weighs, who gets which part), `update` its learner's side (what
    it does around local training, and what it sends). A subclass with a `name` is all that has to be written.

    >>> class Mine(Method): ...
    >>> Mine.title
    'Mine'
    """

    name: ClassVar[str]
    title: ClassVar[str]
    """What figures and tables call it: the class name by default."""
    needs_graph: ClassVar[bool] = False
    """Whether it only works on a fixed graph."""
    draws_anew: ClassVar[bool] = False
    """Whether it draws its receivers anew at every push, among all, and so works on no fixed graph."""
    needs_order: ClassVar[bool] = False
    """Whether it only works where every message arrives, once, in the order in which its sender sent them."""
    exchanges: ClassVar[bool] = False
    """Whether it asks others for an answer that both move by: such an answer must not be withdrawn."""
    needs_everybody: ClassVar[bool] = False
    """Whether it only works where all clients are there from the beginning to the end."""
    meters: ClassVar[tuple[str, ...]] = ()
    """The meters that are on beside those of `meters.names`, by name: what must be known of it."""

    @property
    def rounds(self) -> bool:
        """Whether a client waits for a message of each neighbour before its next event."""
        return False

    @property
    def moves(self) -> int | None:
        """How many optimiser steps a client waits for a new reference before it offers one; None: it has none."""
        return None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "title" not in cls.__dict__:
            cls.title = cls.__name__

    def rules(self, place: Place) -> Rules:
        """Make the protocol side of one client."""
        raise NotImplementedError

    def update(self) -> Update:
        """Make the learner's side of one client: by default plain training, and the whole model in float32."""
        return Update()
