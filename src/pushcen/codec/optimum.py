"""The best K - 1 centroids beside a held zero, for a histogram.

With zero held, what lies on one side of it does not concern the other, so each side is solved alone. Dynamic
programming on some hundred groups of bins finds the shape of the optimum for one number of centroids after the other,
until it is clear where zero should sit; Lloyd's iteration on the bins themselves, with sums at hand, settles it.
Neither looks at a weight.
"""

import numpy as np
from numpy.typing import NDArray

from pushcen.codec.jit import inner, kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Side = tuple[Floats, Ints, Floats]

_SLACK = 1.01  # the wished-for zero index is taken if it costs no more than this,
_NOUGHT = 1e-13  # or nothing but rounding
_ROUNDING = 1e-9  # of all costs: by far more than rounding changes any
_ROUNDS = 200  # Lloyd's iteration ends by itself, nearly always long before
_NARROW = 4  # candidates that nearly every search has, and that are compared without a branch


def best_centroids(counts: Floats, sums: Floats, half: int, clusters: int, wish: int) -> tuple[Floats, Floats, int]:
    """Return the centroids below zero, those above it (both outwards), and the zero index.

    Fewer than `clusters` - 1 come back when there are fewer different bins. The zero index is `wish` unless another
    is better by over a hundredth; then it is the best.
    """
    limit = max(3 * clusters, 48)  # within a hundredth of the optimum, and quick
    below = _side(counts, sums, half - 1, -1, half, limit)
    above = _side(counts, sums, half, 1, counts.size - half, limit)
    return _solve(*below, *above, clusters - 1, wish)


@kernel
def _side(counts: Floats, sums: Floats, first: int, step: int, size: int, limit: int) -> Side:
    """Return the running sums of one side, of `size` bins from the `first` outwards, its groups and their costs."""
    side = _running(counts, sums, first, step, size)
    edges = _groups(side, limit)
    return side, edges, _cell_costs(side, edges)


@kernel
def _solve(
    below: Floats, edges_below: Ints, cells_below: Floats, above: Floats, edges_above: Ints, cells_above: Floats,
    most: int, wish: int,
) -> tuple[Floats, Floats, int]:  # fmt: skip
    """Return what `best_centroids` does."""
    start_below, start_above, zero = _levels(cells_below, cells_above, most, wish)
    found_below = _settle(below, edges_below, start_below, zero)
    return -found_below, _settle(above, edges_above, start_above, most - zero), zero


@inner
def _running(counts: Floats, sums: Floats, first: int, step: int, size: int) -> Floats:
    """Return running sums outwards over the bins in use: columns of count, sum and sum of squares; and each bin's mean.

    Whether a bin is in use is as good as random: each is written, and the next over it if it was not.
    """
    side = np.empty((size + 1, 4))
    side[0] = 0.0
    at = 0
    n = s = q = 0.0
    for bin in range(first, first + step * size, step):
        count, total = counts[bin], step * sums[bin]
        used = count > 0
        mean = max(total, 0.0) / count
        n += count if used else 0.0
        s += total if used else 0.0
        q += total * mean if used else 0.0
        side[at, 3] = mean
        at += used
        side[at, 0], side[at, 1], side[at, 2] = n, s, q
    side[at, 3] = np.inf
    return side[: at + 1]


@inner
def _groups(side: Floats, limit: int) -> Ints:
    """Cut the bins into at most about `limit` groups, fine where the optimum will have centroids close together.

    The optimum's density goes with the cube root of the weights' (Panter and Dite), so a group holds an equal share
    of that; a gap counts with its width, so nothing is grouped across one.
    """
    bins = len(side) - 1
    edges = np.empty(bins + 1, np.int64)
    if bins <= limit:
        for bin in range(bins + 1):
            edges[bin] = bin
        return edges
    share = np.empty(bins)
    before = 0.0
    for bin in range(bins):
        width = side[bin, 3] - before
        before = side[bin, 3]
        share[bin] = np.cbrt((side[bin + 1, 0] - side[bin, 0]) * width * width)
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
def _cell_costs(side: Floats, edges: Ints) -> Floats:
    """Return the cost of one centroid for the groups up to an edge (the row), from an earlier one on (the column).

    In the last column it is that of the cell at zero, which is its sum of squares. The searches of all levels ask for
    each about once or twice; here the divisions go several at a time.
    """
    groups = edges.size - 1
    n = np.empty(groups + 1)
    s = np.empty(groups + 1)
    q = np.empty(groups + 1)
    cell = np.empty((groups + 1, groups + 2))
    for edge in range(groups + 1):
        at = edges[edge]
        n[edge], s[edge], q[edge] = side[at, 0], side[at, 1], side[at, 2]
        row = cell[edge]
        for begin in range(edge):
            total = s[edge] - s[begin]
            row[begin] = q[edge] - q[begin] - total * total / (n[edge] - n[begin])
        row[edge] = 0.0
        row[groups + 1] = q[edge]
    return cell


@inner
def _levels(below: Floats, above: Floats, most: int, wish: int) -> tuple[Ints, Ints, int]:
    """Return for each side, with 0, 1, ... centroids and for each edge, where the best solution's last cell begins; and
    the zero index.

    Where it begins moves outwards only, with the edge and with the number of centroids (Knuth), so all searches of a
    level together are about two passes long. The two sides take turns: while one's search waits for its last
    comparison, the other's is under way.
    """
    groups_below, groups_above = len(below) - 1, len(above) - 1
    before_below, before_above = below[:, groups_below + 1].copy(), above[:, groups_above + 1].copy()
    now_below, now_above = np.empty_like(before_below), np.empty_like(before_above)
    start_below = np.zeros((most + 1, groups_below + 1), np.int64)
    start_above = np.zeros((most + 1, groups_above + 1), np.int64)
    cost = np.empty((2, most + 1))
    cost[0, 0], cost[1, 0] = before_below[groups_below], before_above[groups_above]
    level, zero = 0, -1
    while zero < 0:
        level += 1
        last_below, last_above = groups_below, groups_above
        for step in range(max(groups_below, groups_above) + 1):
            edge = groups_below - step
            if edge >= 0:
                begin, end = start_below[level - 1, edge], min(last_below, edge)
                now_below[edge], last_below = _search(before_below, below[edge], begin, end)
                start_below[level, edge] = last_below
            edge = groups_above - step
            if edge >= 0:
                begin, end = start_above[level - 1, edge], min(last_above, edge)
                now_above[edge], last_above = _search(before_above, above[edge], begin, end)
                start_above[level, edge] = last_above
        before_below, now_below = now_below, before_below
        before_above, now_above = now_above, before_above
        cost[0, level], cost[1, level] = max(before_below[groups_below], 0.0), max(before_above[groups_above], 0.0)
        if level >= max(wish, most - wish):
            zero = _zero_index(cost, level, wish)
    return start_below, start_above, zero


@inner
def _search(before: Floats, cell: Floats, begin: int, end: int) -> tuple[float, int]:
    """Return the least cost with a last cell that begins from `begin` to `end`, and where it does first."""
    least, at = before[begin] + cell[begin], begin
    for ahead in range(1, _NARROW):
        one = min(begin + ahead, end)
        cost = before[one] + cell[one]
        less = cost < least
        least, at = cost if less else least, one if less else at
    for one in range(begin + _NARROW, end + 1):
        cost = before[one] + cell[one]
        less = cost < least
        least, at = cost if less else least, one if less else at
    return least, at


@inner
def _zero_index(cost: Floats, level: int, wish: int) -> int:
    """Return the zero index, or -1 if that takes more levels: the rows of `cost` are only known up to `level`.

    With the number of centroids a cost falls, but never faster than before (it is convex, as cells have Monge costs),
    nor below zero. If the wish is good enough even so, no further level can change that.
    """
    most = cost.shape[1] - 1
    least, best = np.inf, 0
    for zero in range(most + 1):
        value = 0.0
        for side in range(2):
            count = most - zero if side else zero
            if count <= level:
                value += cost[side, count]
            else:
                fall = (cost[side, level - 1] - cost[side, level]) * (count - level)
                value += max(cost[side, level] - fall - _ROUNDING * cost[side, 0], 0.0)
        if value < least:
            least, best = value, zero
    enough = _SLACK * least + _NOUGHT * (cost[0, 0] + cost[1, 0])
    if cost[0, wish] + cost[1, most - wish] <= enough:
        best = wish
    elif level < most:
        best = -1
    return best


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
            count = side[cuts[cell + 1], 0] - side[cuts[cell], 0]
            if count > 0:
                centroids[cell] = (side[cuts[cell + 1], 1] - side[cuts[cell], 1]) / count
        moved = False
        inner = 0.0
        for cell in range(centroids.size):
            cut = cuts[cell]
            middle = (inner + centroids[cell]) / 2
            while cut > 0 and side[cut - 1, 3] > middle:
                cut -= 1
            while side[cut, 3] <= middle:  # it ends at infinity
                cut += 1
            moved |= cut != cuts[cell]
            cuts[cell] = cut
            inner = centroids[cell]
        if not moved:
            break
    used = 0
    for cell in range(centroids.size):
        if side[cuts[cell + 1], 0] > side[cuts[cell], 0] and centroids[cell] > 0:
            centroids[used] = centroids[cell]
            used += 1
    return centroids[:used]
