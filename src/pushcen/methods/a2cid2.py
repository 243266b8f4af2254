"""A2CiD2 (Nabli et al., NeurIPS 2023): AD-PSGD's exchanges, accelerated by a continuous local momentum.

A2CiD2: Accelerating Asynchronous Communication in Decentralized Deep Learning, https://arxiv.org/abs/2306.08289
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pushcen.errors import OptionError
from pushcen.learning import LocalMomentumUpdate, Update
from pushcen.methods.method import Method, Place
from pushcen.methods.per_graph import Graph, once_per_graph
from pushcen.protocol import Ask, AtOnce, Equal, Rules


def constants(edges: Graph) -> tuple[float, float]:
    """Return eta and a for a graph on which each client asks one of its neighbours in a unit of time.

    >>> eta, a = constants({"a": ("b",), "b": ("a",)})
    >>> round(eta, 6), round(a, 6)
    (2.0, 0.5)
    """
    if len(edges) < 2:
        return 0.0, 0.5
    place = {name: at for at, name in enumerate(edges)}
    rates = np.zeros((len(edges), len(edges)))
    for name, others in edges.items():
        for other in others:
            rates[place[name], place[other]] += 1 / len(others)
    rates += rates.T
    laplacian = np.diag(rates.sum(1)) - rates
    second = float(np.linalg.eigvalsh(laplacian)[1])
    if second < 1e-9:
        raise OptionError("neighbours: the graph falls apart; a2cid2 needs one on which everybody can be reached")
    inverse = np.linalg.pinv(laplacian, hermitian=True)
    own = np.diag(inverse)
    resistances = own[:, None] + own[None, :] - 2 * inverse
    chi_1, chi_2 = 1 / second, float(resistances[rates > 0].max()) / 2
    return 1 / (2 * math.sqrt(chi_1 * chi_2)), math.sqrt(chi_1 / chi_2) / 2


_constants = once_per_graph(constants)


@dataclass(frozen=True)
class A2Cid2(Method):
    """Two models x, z (x~ in the paper) of each client; each asks one random neighbour at the end of a compute event.

        wait       (x, z) <- exp(t [[-eta, eta], [eta, -eta]]) (x, z), before each of these:
        begin      v_i <- x_i
        exchange   d = x_i - x_j    x_i <- x_i - d / 2    z_i <- z_i - a d    x_j <- x_j + d / 2    z_j <- z_j + a d
        train      x_i and z_i both + the displacement that the event's training makes of v_i

        eta = 1 / (2 sqrt(chi_1 chi_2))      a = sqrt(chi_1 / chi_2) / 2
        chi_1 = 1 / the second smallest eigenvalue of L
        chi_2 = half the largest effective resistance, in L, of an edge

    t is the time since the client's last such step, in mean gradient times: the time in which clients have one compute
    event each, on average. L is the Laplacian of the graph, in which an edge weighs the exchanges over it in that
    time: 1 / (degree of i) + 1 / (degree of j). The displacement stands for the paper's gradient step, and what is
    said of busy partners and lost answers in `ad-psgd` holds here, too. x is the model that is sent and evaluated.
    """

    name: ClassVar[str] = "a2cid2"
    title: ClassVar[str] = "A2CiD2"
    needs_graph: ClassVar[bool] = True
    exchanges: ClassVar[bool] = True
    receivers: ClassVar[int] = 1

    def rules(self, place: Place) -> Rules:
        """Ask one neighbour, by the constants of the graph."""
        place.neighbours(self)
        assert place.edges is not None
        eta, momentum = _constants(place.edges)
        return Rules(AtOnce(), Equal(), Ask(self.receivers, momentum=momentum, mixing=eta))

    def update(self) -> Update:
        """Keep two models."""
        return LocalMomentumUpdate()
