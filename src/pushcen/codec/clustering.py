"""Weight Clustering Pruning (the paper's Algorithm 4): one layer's weights become K values and an index each.

One of the K centroids is held at exactly zero, so that index stands for pruned weights. Two ways to find the others:
the default takes the optimum on a fine histogram; `profile="paper"` does what the paper's authors ran, three iterations
of Lloyd from their own start.
"""

import math
from dataclasses import dataclass
from types import ModuleType
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from pushcen.checks import check_choice, check_count
from pushcen.codec import numba_kernels, torch_kernels
from pushcen.codec.bins import LIMIT, Bins, sample_stride
from pushcen.codec.codebook import Codebook
from pushcen.codec.optimum import best_centroids
from pushcen.errors import ModelError, OptionError

Profile = Literal["default", "paper"]
Floats = NDArray[np.float64]
_PAPER_ITERATIONS = 3
_FEW = 1024  # up to here every value is a bin of its own


@dataclass(frozen=True, eq=False)
class Clusters:
    """What `cluster` found: `centroids[indices]` rebuilds the weights."""

    centroids: torch.Tensor
    """The K values, sorted (V in the paper)."""
    indices: torch.Tensor
    """The index of each weight's centroid, one byte each, in the weights' shape (A in the paper)."""
    zero_index: int
    """The index whose centroid is held at exactly zero."""

    @property
    def mask(self) -> torch.Tensor:
        """True where a weight is kept, False where it is pruned (M in the paper)."""
        return self.indices != self.zero_index

    def decode(self) -> torch.Tensor:
        """Rebuild the weights."""
        return self.centroids[self.indices.int()]


def cluster(
    weights: torch.Tensor,
    clusters: int = 32,
    *,
    start: torch.Tensor | None = None,
    profile: Profile = "default",
    rng: np.random.Generator | None = None,
) -> Clusters:
    """Replace weights by the nearest of `clusters` values, one of them zero.

    `start` is a table to start from (G in the paper). The default profile needs it only for what an unused centroid
    keeps and for where zero should sit; the paper's begins there, or without it at random weights, drawn by `rng`.

    >>> found = cluster(torch.tensor([[-1.0, 0.01], [0.02, 2.0]]), clusters=3)
    >>> found.centroids, found.zero_index
    (tensor([-1.,  0.,  2.]), 1)
    >>> found.indices
    tensor([[0, 1],
            [1, 2]], dtype=torch.uint8)
    """
    flat = flatten(weights)
    cells, bins = fit(flat, clusters, start=start, profile=profile, rng=rng)
    indices = kernels(flat).assign(flat, cells, bins).view(weights.shape)
    return Clusters(torch.from_numpy(cells.centroids).to(weights.device), indices, cells.zero_index)


def fit(
    weights: torch.Tensor,
    clusters: int,
    *,
    start: torch.Tensor | None = None,
    profile: Profile = "default",
    rng: np.random.Generator | None = None,
    name: str = "weights",
) -> tuple[Codebook, Bins]:
    """Find the centroids of flat float32 weights; `name` is for the error if they cannot be clustered."""
    check_options(clusters, profile)
    table = None if start is None else _checked(start, clusters, name)
    if profile == "paper":
        bins = Bins.fit(_sample(weights), largest(weights, name), clusters)
        return _paper_cells(weights, bins, clusters, table, rng or np.random.default_rng(0)), bins
    counts, sums, half, bins = _histogram(weights, clusters, name)
    table = None if table is None or not np.count_nonzero(table) else table  # zeros do not say where zero should sit
    wish = clusters // 2 if table is None else int(np.abs(table).argmin())
    below, above, zero = best_centroids(counts, sums, half, clusters, wish)
    if below.size + above.size < clusters - 1:
        kept = np.zeros(0) if table is None else table
        below = -_completed(-below, zero, -kept[kept < 0])
        above = _completed(above, clusters - 1 - zero, kept[kept > 0])
    values = np.zeros(clusters)
    values[:zero], values[zero + 1 :] = below[::-1], above
    return Codebook.nearest(values, zero), bins


def largest(weights: torch.Tensor, name: str) -> float:
    """Return the largest magnitude of flat float32 weights; refuse, by name, what is not finite or absurdly large.

    >>> largest(torch.tensor([float("nan")]), "fc.weight")
    Traceback (most recent call last):
    pushcen.errors.ModelError: fc.weight has a value that is not finite; must be finite and at most 2**60 ...
    """
    most = float(kernels(weights).largest(weights))
    _check_magnitude(most, name)
    return most


def flatten(weights: torch.Tensor) -> torch.Tensor:
    """Return the weights as one row of float32, copied only if they are not that already.

    >>> flatten(torch.ones(2, 3, dtype=torch.float16)).shape
    torch.Size([6])
    """
    row = weights.detach().flatten()
    return row if row.dtype == torch.float32 else row.to(torch.float32)


def kernels(weights: torch.Tensor) -> ModuleType:
    """Return the module that has the kernels for the device that `weights` are on.

    >>> kernels(torch.ones(1)).__name__
    'pushcen.codec.numba_kernels'
    """
    return numba_kernels if weights.device.type == "cpu" else torch_kernels


def check_options(clusters: int, profile: str) -> None:
    """Refuse a number of clusters or a profile that does not exist."""
    check_count("clusters", clusters, 2, 256)
    check_choice("profile", profile, get_args(Profile))


def _histogram(weights: torch.Tensor, clusters: int, name: str) -> tuple[Floats, Floats, int, Bins]:
    """Return counts, sums, how many of the bins lie below zero, and the bins by which indices can be found."""
    sample = _sample(weights)
    if weights.numel() <= _FEW:
        bins = Bins.fit(sample, largest(weights, name), clusters)
        values, counts = _counted(weights.cpu().numpy())
        return counts, counts * values, int(np.searchsorted(values, 0.0)), bins
    guess = min(4 * float(sample.max()), LIMIT)  # nearly always enough, and saves a pass to know it
    bins = Bins.fit(sample, guess, clusters)
    counts, sums, most = kernels(weights).histogram(weights, bins)
    _check_magnitude(most, name)
    if most > guess:
        bins = Bins.fit(sample, most, clusters)
        counts, sums, _ = kernels(weights).histogram(weights, bins)
    return counts, sums, bins.half, bins


def _counted(weights: NDArray[np.float32]) -> tuple[Floats, Floats]:
    """Return the different values, sorted, and how often there is each.

    >>> _counted(np.array([2, -1, 2], np.float32))
    (array([-1.,  2.]), array([1., 2.]))
    """
    values = np.sort(weights)
    new = np.ones(values.size + 1, np.bool_)
    np.not_equal(values[1:], values[:-1], out=new[1:-1])
    at = new.nonzero()[0]
    return values[at[:-1]].astype(np.float64), np.diff(at).astype(np.float64)


def _sample(weights: torch.Tensor) -> NDArray[np.float32]:
    """Return the magnitudes of some weights."""
    magnitudes: NDArray[np.float32] = np.abs(weights[:: sample_stride(weights.numel())].cpu().numpy())
    if magnitudes.size and not math.isfinite(magnitudes.max()):
        magnitudes[~np.isfinite(magnitudes)] = 0  # refused later, by name
    return magnitudes


def _checked(start: torch.Tensor, clusters: int, name: str) -> Floats:
    """Return a table to start from, or refuse it."""
    table: Floats = start.detach().double().cpu().numpy()
    if table.shape != (clusters,) or not np.isfinite(table).all():
        raise OptionError(f"start for {name}: must be {clusters} finite values, not {list(table.shape)}")
    return table


def _check_magnitude(most: float, name: str) -> None:
    if most > LIMIT:
        what = f"a value of {most:.3g}" if np.isfinite(most) else "a value that is not finite"
        raise ModelError(
            f"{name} has {what}; must be finite and at most 2**60 in float32 (has training diverged? "
            "what need not travel can be left out with share=)"
        )


def _completed(used: NDArray[np.float64], places: int, kept: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fill one side's places, outwards from zero: an unused centroid keeps its value or repeats its neighbour."""
    if used.size == places:
        return used
    spare = sorted(kept)
    for value in used:
        if spare:
            spare.pop(int(np.abs(np.array(spare) - value).argmin()))
    filled = sorted([*used, *spare[: places - used.size]])
    return np.array(filled + [filled[-1] if filled else 0.0] * (places - len(filled)))


def _paper_cells(
    weights: torch.Tensor, bins: Bins, clusters: int, start: NDArray[np.float64] | None, rng: np.random.Generator
) -> Codebook:
    """Algorithm 4 to the letter: the indices are those of the last assignment, made before the last means.

    Of equal centroids the first gets all members, as `argmin` gives them; the others are empty and keep their value.
    """
    if start is None:
        drawn = rng.choice(max(weights.numel(), 1), clusters - 1, replace=weights.numel() < clusters - 1)
        chosen = torch.from_numpy(drawn).to(weights.device)
        rest = weights[chosen].double().cpu().numpy() if weights.numel() else np.zeros(clusters - 1)
    else:
        rest = start[1:]
    values = np.array([0.0, *rest])
    for _ in range(_PAPER_ITERATIONS):
        active, first = np.unique(values.astype(np.float32), return_index=True)
        zero = int(np.searchsorted(active, 0.0))
        cells = Codebook.nearest(active, zero)
        indices = kernels(weights).assign(weights, cells, bins).int()
        count = torch.bincount(indices, minlength=active.size).cpu().numpy()
        total = torch.bincount(indices, weights.double(), minlength=active.size).cpu().numpy()
        moved = np.where((count > 0) & (np.arange(active.size) != zero), total / np.maximum(count, 1), active)
        values = np.concatenate([moved, np.delete(values, first)])
    order = np.argsort(values, kind="stable")
    place = np.argsort(order)[: active.size]
    steps = np.diff(place, prepend=0, append=clusters - 1)
    edges = np.concatenate([[-np.inf], cells.thresholds, [np.inf]]).astype(np.float32)
    return Codebook(values[order].astype(np.float32), np.repeat(edges, steps), int(place[zero]))
