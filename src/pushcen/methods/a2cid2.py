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
    clients = len(edges)
    if clients < 2:
        return 0.0, 0.5
    # Imported here: no other method needs it, and it takes a while.
    from scipy.linalg.blas import dsymv
    from scipy.linalg.lapack import dpotrf, dpotri
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components, laplacian
    from scipy.sparse.linalg import LinearOperator, eigsh

    place = {name: at for at, name in enumerate(edges)}
    ends = np.array([(place[name], place[other]) for name, others in edges.items() for other in others], int)
    degrees = np.array([len(others) for others in edges.values()])
    asks = coo_array((1 / np.repeat(degrees, degrees), ends.reshape(-1, 2).T), shape=(clients, clients))
    rates = (asks + asks.T).tocoo()
    if connected_components(rates)[0] > 1:
        raise OptionError("neighbours: the graph falls apart; a2cid2 needs one on which everybody can be reached")
    # The inverse of L + 1/n is L's pseudo-inverse + 1/n, which resistances do not see. Only its upper half is made.
    whole = np.asfortranarray(laplacian(rates).toarray() + 1 / clients)
    inverse, _ = dpotri(dpotrf(whole, overwrite_a=True)[0], overwrite_c=True)
    apply = LinearOperator((clients, clients), lambda row: dsymv(1.0, inverse, row) - row.mean(), dtype=float)
    anywhere = np.random.default_rng(0).standard_normal(clients)
    chi_1 = float(eigsh(apply, 1, which="LA", v0=anywhere, return_eigenvectors=False)[0])
    own, (low, high) = np.diag(inverse), np.sort((rates.row, rates.col), axis=0)
    chi_2 = float((own[low] + own[high] - 2 * inverse[low, high]).max()) / 2
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
