"""Plain, slow and obvious versions of clustering: what the codec is measured against."""

import numpy as np
import torch
from numpy.typing import NDArray


def lloyd(weights: torch.Tensor, clusters: int, generator: torch.Generator, iterations: int = 3) -> torch.Tensor:
    """Cluster with a distance matrix from a random start, as Algorithm 4 is usually written; return them decoded.

    >>> lloyd(torch.tensor([-1.0, 0.0, 1.0]), 3, torch.Generator().manual_seed(0)).shape
    torch.Size([3])
    """
    flat = weights.flatten()
    start = flat[torch.randint(flat.numel(), (clusters - 1,), generator=generator)]
    centroids = torch.cat([torch.zeros(1), start])
    for _ in range(iterations):
        nearest = (flat[:, None] - centroids[None, :]).abs().argmin(dim=1)
        for j in range(1, clusters):
            members = flat[nearest == j]
            if members.numel():
                centroids[j] = members.mean()
    centroids, order = centroids.sort()
    nearest = order.argsort()[nearest]
    return centroids[nearest].view(weights.shape)


def least_error(values: NDArray[np.floating], clusters: int) -> float:
    """Return the least mean squared error that any `clusters` centroids, one of them zero, can have.

    Exact, by dynamic programming over the sorted values: the best of a first j values with k cells, of which the one
    at zero has been used or not. Quadratic in the number of values.

    >>> least_error(np.array([-1.0, 0.1, 2.0, 2.2]), clusters=3)
    0.0075...
    """
    x = np.sort(np.asarray(values, np.float64))
    n = x.size
    s, q = np.append(0, np.cumsum(x)), np.append(0, np.cumsum(x * x))
    i, j = np.arange(n)[:, None], np.arange(1, n + 1)[None, :]
    valid = j > i
    at_zero = np.where(valid, q[j] - q[i], np.inf)  # cost of the cell that holds values i to j-1, its centroid zero
    at_mean = np.where(valid, at_zero - (s[j] - s[i]) ** 2 / np.maximum(j - i, 1), np.inf)
    without = np.append(0.0, np.full(n, np.inf))  # best cost of the first j values, the zero not used yet
    used = np.full(n + 1, np.inf)  # and used, perhaps for no value at all
    for _ in range(clusters):
        extended = np.minimum((used[:-1, None] + at_mean).min(axis=0), (without[:-1, None] + at_zero).min(axis=0))
        used = np.minimum(np.minimum(used, without), np.append(np.inf, extended))
        without[1:] = np.minimum(without[1:], (without[:-1, None] + at_mean).min(axis=0))
    return float(max(used[n], 0.0) / n)
