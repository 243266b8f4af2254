"""DSpodFL (Zehtabi et al., ICLR 2025): steps and links that both happen only now and then.

Decentralized Sporadic Federated Learning: A Unified Algorithmic Framework with Convergence Guarantees,
https://arxiv.org/abs/2402.03448
"""

from dataclasses import dataclass
from typing import ClassVar

from pushcen.checks import check_number
from pushcen.learning import ExchangeUpdate, Update
from pushcen.methods.method import Method, Place
from pushcen.methods.per_graph import Graph, once_per_graph
from pushcen.protocol import Ask, AtOnce, Equal, Rules


@once_per_graph
def _neighbours(edges: Graph) -> dict[str, set[str]]:
    """Return whom each client shares an edge with, whichever way that goes."""
    found = {name: set(others) for name, others in edges.items()}
    for name, others in edges.items():
        for other in others:
            found[other].add(name)
    return found


@dataclass(frozen=True)
class DSpodFL(Method):
    """At the end of a compute event of client i, each of its edges is drawn once: both ends move, or neither.

        w_i <- w_i + sum_j v_ij (w_j - w_i) / (1 + max(d_i, d_j)) + the displacement that training makes of w_i
        w_j <- w_j + v_ij (w_i - w_j) / (1 + max(d_i, d_j))

    with v_ij = 1 with probability `chance`, else 0, and degrees d. The displacement stands for the paper's gradient
    step; it starts from w_i as it was when the event began, before mixing, and is added to what w_i has become.

    The paper has a clock for all, and v_i says whether client i computes in a round. Here a client's events are the
    rounds in which it does, and either end of an edge draws it at its own events. What is said of busy partners and
    lost answers in `ad-psgd` holds here, too.
    """

    name: ClassVar[str] = "dspodfl"
    needs_graph: ClassVar[bool] = True
    exchanges: ClassVar[bool] = True

    chance: float = 0.5
    """With which probability each edge of a client is used at the end of its events."""

    def __post_init__(self) -> None:
        check_number("chance", self.chance, 0, 1, above=True)

    def rules(self, place: Place) -> Rules:
        """Draw each neighbour; weigh by degrees."""
        place.neighbours(self)
        assert place.edges is not None
        near = _neighbours(place.edges)
        own = near[place.me]
        shares = {name: 1 / (1 + max(len(own), len(near[name]))) for name in own}
        return Rules(AtOnce(), Equal(), Ask(0, self.chance, shares=shares))

    def update(self) -> Update:
        """Add what training makes to what the model has become."""
        return ExchangeUpdate()
