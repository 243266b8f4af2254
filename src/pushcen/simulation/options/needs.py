"""What a method needs of its world: if that is missing, it is refused by the setting that would have to change."""

from collections.abc import Sequence

from pushcen.errors import OptionError
from pushcen.methods import Method, Place
from pushcen.protocol.graphs import Edges
from pushcen.simulation.options.clients import ParticipationOptions
from pushcen.simulation.options.network import NeighbourOptions, NetworkOptions

ORDER = {"loss": 0.0, "duplicate": 0.0, "reorder": 0.0, "jitter": 0.0, "backlog": True}
"""The options of the network by which messages are lost, come twice, or overtake each other, and what is right."""
PRESENCE = {"delayed": 0.0, "joins": "", "churn": 0.0, "crashes": 0.0, "trace": ""}
"""The options by which clients come late, or are away for a while, and what is right."""


def check_needs(
    method: Method, neighbours: NeighbourOptions, network: NetworkOptions, participation: ParticipationOptions
) -> None:
    """Refuse a method in a world that it cannot live in.

    >>> from pushcen.methods import Epidemic
    >>> check_needs(Epidemic(), NeighbourOptions(kind="graph"), NetworkOptions(), ParticipationOptions())
    Traceback (most recent call last):
    pushcen.errors.OptionError: neighbours.kind = 'graph': epidemic draws its receivers anew; must be random or view
    """
    name = type(method).name
    if method.needs_graph and neighbours.kind != "graph":
        raise OptionError(f"neighbours.kind = {neighbours.kind!r}: {name} needs a fixed graph; must be graph")
    if method.draws_anew and neighbours.kind == "graph":
        raise OptionError(f"neighbours.kind = 'graph': {name} draws its receivers anew; must be random or view")
    for section, options, right, why in (
        ("network", network, {"backlog": True} if method.exchanges else {}, "every answer to be sent"),
        ("network", network, ORDER if method.needs_order else {}, "every message, once and in order"),
        ("participation", participation, PRESENCE if method.needs_everybody else {}, "everybody all the time"),
    ):
        for option, value in right.items():
            given = getattr(options, option)
            if given != value:
                raise OptionError(f"{section}.{option} = {given!r}: {name} needs {why}; must be {value!r}")


def check_graph(method: Method, neighbours: NeighbourOptions, names: Sequence[str], edges: Edges | None) -> None:
    """Refuse a graph on which the method cannot have a rule for each client.

    >>> from pushcen.methods import DPsgd
    >>> ring = NeighbourOptions(kind="graph", graph="ring")
    >>> check_graph(DPsgd(), ring, "abc", {"a": ("b",), "b": ("c",), "c": ("a",)})
    Traceback (most recent call last):
    pushcen.errors.OptionError: neighbours.graph = 'ring': edge a -> b has no way back: d-psgd needs both ...
    """
    key = "file" if neighbours.file else "graph"
    for name in names if method.needs_graph else ():
        if edges is None:
            raise OptionError(
                f"neighbours.graph = {neighbours.graph!r}: changes with time, and {type(method).name} needs a fixed "
                "graph; must be a name, or a file of edges that stay"
            )
        try:
            method.rules(Place(name, edges))
        except OptionError as error:
            told = str(error).removeprefix("graph: ").removeprefix("neighbours: ")
            raise OptionError(f"neighbours.{key} = {getattr(neighbours, key)!r}: {told}") from None
