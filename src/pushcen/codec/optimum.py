"""The best K - 1 centroids beside a held zero, for a histogram.

With zero held, what lies on one side of it does not concern the other, so each side is solved alone. Dynamic
programming on some hundred groups of bins finds the optimum's shape for every number of centroids at once; Lloyd's
iteration on the bins themselves, with sums at hand, settles it. Neither looks at a weight.
"""

import numpy as np
from numpy.typing import NDArray

from pushcen.codec.jit import inner, kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SLACK = 1.01  # the wished-for zero index is taken if it costs no more than this,
_NOUGHT = 1e-13  # or nothing but rounding
_ROUNDS = 200  # Lloyd's iteration ends by itself, nearly always long before


def best_centroids(counts: Floats, sums: Floats, half: int, clusters: int, wish: int) -> tuple[Floats, Floats, int]:
    """Return the centroids below zero, those above it (both outwards), and the zero index.

    Fewer than `clusters` - 1 come back when there are fewer different bins. The zero index is `wish` unless another
    is better by over a hundredth; then it is the best.
    """
    below = np.ascontiguousarray(counts[:half][::-1]), np.ascontiguousarray(-sums[:half][::-1])
    side_below, edges_below, cost_below, start_below = _solve(*below, clusters)
    side_above, edges_above, cost_above, start_above = _solve(counts[half:], sums[half:], clusters)
    cost = cost_below + cost_above[::-1]  # by zero index: so many centroids below, and the rest above
    best = int(cost.argmin())
    enough = _SLACK * cost[best] + _NOUGHT * (cost_below[0] + cost_above[0])
    zero = wish if cost[wish] <= enough else best
    return (
        -_settle(side_below, edges_below, start_below, zero),
        _settle(side_above, edges_above, start_above, clusters - 1 - zero),
        zero,
    )


@kernel
def _solve(counts: Floats, sums: Floats, clusters: int) -> tuple[Floats, Ints, Floats, Ints]:
    """Solve one side for every number of centroids; return its running sums and groups, and what `_levels` does."""
    side = _side(counts, sums)
    edges = _groups(side, max(3 * clusters, 48))  # within a hundredth of the optimum, and quick
    cost, start = _levels(side, edges, clusters - 1)
    return side, edges, cost, start


@inner
def _side(counts: Floats, sums: Floats) -> Floats:
    """Return running sums outwards over the bins in use: rows of count, sum, sum of squares, and each bin's mean."""
    used = 0
    for count in counts:
        used += count > 0
    side = np.zeros((4, used + 1))
    at = 0
    for bin in range(counts.size):
        if counts[bin] > 0:
            mean = max(sums[bin], 0.0) / counts[bin]
            side[0, at + 1] = side[0, at] + counts[bin]
            side[1, at + 1] = side[1, at] + sums[bin]
            side[2, at + 1] = side[2, at] + sums[bin] * mean
            side[3, at] = mean
            at += 1
    side[3, used] = np.inf
    return side


@inner
def _groups(side: Floats, limit: int) -> Ints:
    """Cut the bins into at most about `limit` groups, fine where the optimum will have centroids close together.

    The optimum's density goes with the cube root of the weights' (Panter and Dite), so a group holds an equal share
    of that; a gap counts with its width, so nothing is grouped across one.
    """
    bins = side.shape[1] - 1
    edges = np.empty(bins + 1, np.int64)
    if bins <= limit:
        for bin in range(bins + 1):
            edges[bin] = bin
        return edges
    share = np.empty(bins)
    before = 0.0
    for bin in range(bins):
        width = side[3, bin] - before
        before = side[3, bin]
        share[bin] = np.cbrt((side[0, bin + 1] - side[0, bin]) * width * width)
    fill = _fill(share, limit)
    edges[0] = 0
    count = 0
    held = 0.0
    for bin in range(bins):
        if held > 0 and held + share[bin] > fill:
            count += 1
            edges[count] = bin
            held = 0.0
        held += share[bin]
    edges[count + 1] = bins
    return edges[: count + 2]


@inner
def _fill(share: Floats, limit: int) -> float:
    """Return the share of a group: a bin with more than that is a group by itself, and the others share the rest."""
    fill = 0.0
    for one in share:
        fill += one
    fill /= limit
    for _ in range(20):
        alone = 0
        rest = 0.0
        for one in share:
            if one > fill:
                alone += 1
            else:
                rest += one
        even = rest / max(limit - alone, 1)
        if even >= fill:
            break
        fill = even
    return fill


@inner
def _levels(side: Floats, edges: Ints, most: int) -> tuple[Floats, Ints]:
    """Return the least cost with 0, 1, ... `most` centroids, and for each group edge where its last cell begins.

    The cell at zero costs its sum of squares. Where the last cell of the best solution begins moves outwards only, with
    the edge and with the number of centroids (Knuth), so all searches of a level together are about two passes long.
    """
    groups = edges.size - 1
    cell = _cell_costs(side, edges)
    before = np.empty(groups + 1)
    now = np.empty(groups + 1)
    cost = np.empty(most + 1)
    start = np.zeros((most + 1, groups + 1), np.int64)
    for edge in range(groups + 1):
        before[edge] = side[2, edges[edge]]
    cost[0] = before[groups]
    for level in range(1, most + 1):
        last = groups
        for edge in range(groups, -1, -1):
            least = np.inf
            at = start[level - 1, edge]
            for begin in range(at, min(last, edge) + 1):
                value = before[begin] + cell[edge, begin]
                if value < least:
                    least = value
                    at = begin
            now[edge] = least
            start[level, edge] = last = at
        before, now = now, before
        cost[level] = before[groups]
    for level in range(most + 1):
        cost[level] = max(cost[level], 0.0)
    return cost, start


@inner
def _cell_costs(side: Floats, edges: Ints) -> Floats:
    """Return the cost of one centroid for the groups up to an edge (the row), from an earlier one on (the column).

    The searches of all levels ask for each about once or twice; here the divisions go several at a time.
    """
    groups = edges.size - 1
    n = np.empty(groups + 1)
    s = np.empty(groups + 1)
    q = np.empty(groups + 1)
    cell = np.empty((groups + 1, groups + 1))
    for edge in range(groups + 1):
        at = edges[edge]
        n[edge], s[edge], q[edge] = side[0, at], side[1, at], side[2, at]
        row = cell[edge]
        for begin in range(edge):
            total = s[edge] - s[begin]
            row[begin] = q[edge] - q[begin] - total * total / (n[edge] - n[begin])
        row[edge] = 0.0
    return cell


@inner
def _cuts(start: Ints, edges: Ints, centroids: int) -> Ints:
    """Return the bins where the cells of the best solution begin, and the end of the last."""
    cuts = np.empty(centroids + 1, np.int64)
    group = edges.size - 1
    cuts[centroids] = edges[group]
    for level in range(centroids, 0, -1):
        group = start[level, group]
        cuts[level - 1] = edges[group]
    return cuts


@kernel
def _settle(side: Floats, edges: Ints, start: Ints, most: int) -> Floats:
    """Move the cuts between cells to the middle between centroids until none moves; return the centroids in use."""
    cuts = _cuts(start, edges, most)
    centroids = np.zeros(cuts.size - 1)
    for _ in range(_ROUNDS):
        for cell in range(centroids.size):
            count = side[0, cuts[cell + 1]] - side[0, cuts[cell]]
            if count > 0:
                centroids[cell] = (side[1, cuts[cell + 1]] - side[1, cuts[cell]]) / count
        moved = False
        inner = 0.0
        for cell in range(centroids.size):
            cut = cuts[cell]
            middle = (inner + centroids[cell]) / 2
            while cut > 0 and side[3, cut - 1] > middle:
                cut -= 1
            while side[3, cut] <= middle:  # it ends at infinity
                cut += 1
            moved |= cut != cuts[cell]
            cuts[cell] = cut
            inner = centroids[cell]
        if not moved:
            break
    used = 0
    for cell in range(centroids.size):
        if side[0, cuts[cell + 1]] > side[0, cuts[cell]] and centroids[cell] > 0:
            centroids[used] = centroids[cell]
            used += 1
    return centroids[:used]
