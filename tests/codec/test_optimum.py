"""The zero index and the centroids are those that solving both sides for every number of centroids gives."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pushcen.codec.optimum import _NOUGHT, _SLACK, _settle, _side, best_centroids


def plain(counts, sums, half, clusters, wish):
    """Slow and obvious: all levels of both sides, then the best zero index, or the wish if it costs no more."""
    most, limit = clusters - 1, max(3 * clusters, 48)
    sides = (
        _side(counts, sums, half - 1, -1, half, limit),
        _side(counts, sums, half, 1, counts.size - half, limit),
    )
    (below, starts_below), (above, starts_above) = (levels(cells, most) for _, _, cells in sides)
    cost = below + above[::-1]
    best = int(cost.argmin())
    zero = wish if cost[wish] <= _SLACK * cost[best] + _NOUGHT * (below[0] + above[0]) else best
    found = [
        _settle(*sides[0][:2], starts_below, zero),
        _settle(*sides[1][:2], starts_above, most - zero),
    ]
    return -found[0], found[1], zero


def levels(cells, most):
    """The cost with 0, 1, ... `most` centroids, and where last cells begin: the first best between the neighbours'."""
    groups = len(cells) - 1
    cost, starts, before = [cells[groups, -1]], np.zeros((most + 1, groups + 1), np.int64), cells[:, -1]
    for level in range(1, most + 1):
        now, last = before.copy(), groups
        for edge in range(groups, -1, -1):
            first = starts[level - 1, edge]
            values = before[first : min(last, edge) + 1] + cells[edge, first : min(last, edge) + 1]
            starts[level, edge] = last = first + int(values.argmin())
            now[edge] = values.min()
        before = now
        cost.append(before[groups])
    return np.maximum(cost, 0.0), starts


def normal(bins, of):
    """Counts of so many bins over `of` standard deviations on either side."""
    return (10_000 * np.exp(-(np.linspace(-of, of, bins) ** 2) / 2)).astype(int).tolist()


counts = st.lists(st.one_of(st.integers(0, 2), st.integers(0, 10**6)), max_size=160)


@given(
    counts=counts,
    share=st.floats(0, 1),
    power=st.sampled_from([0.2, 1.0, 3.0, 12.0]),
    scale=st.sampled_from([1e-30, 1e-3, 1.0, 1e15]),
    outlier=st.sampled_from([1.0, 1.0, 1e3, 1e8]),
    clusters=st.sampled_from([2, 3, 17, 32, 64, 256]),
    wish=st.floats(0, 1),
)
@example(counts=normal(400, 4), share=0.5, power=1.0, scale=1.0, outlier=1.0, clusters=32, wish=0.5)
@example(counts=normal(400, 4), share=0.3, power=3.0, scale=1.0, outlier=1e3, clusters=32, wish=0.5)
@example(counts=normal(400, 4), share=1.0, power=1.0, scale=1.0, outlier=1.0, clusters=17, wish=0.5)
@example(counts=[7] * 150, share=0.5, power=1.0, scale=1.0, outlier=1.0, clusters=64, wish=0.4)
@example(counts=[0, 3, 4], share=0.5, power=1.0, scale=1.0, outlier=1.0, clusters=2, wish=1.0)
def test_no_further_level_would_change_what_is_found(counts, share, power, scale, outlier, clusters, wish):
    half = int(share * len(counts))
    means = np.concatenate([-np.arange(half, 0, -1), np.arange(len(counts) - half)]) / max(len(counts), 1)
    means = np.sign(means) * np.abs(means) ** power * scale
    means[-1:] *= outlier
    counts = np.array(counts, np.float64)
    given = counts, counts * means, half, clusters, int(wish * (clusters - 1))
    below, above, zero = best_centroids(*given)
    expected = plain(*given)
    assert zero == expected[2]
    assert below.tobytes() == expected[0].tobytes()
    assert above.tobytes() == expected[1].tobytes()


@pytest.mark.parametrize("wish", [0, 12, 16, 20, 31])
def test_a_wish_that_costs_too_much_is_not_followed(wish):
    counts = np.array(normal(400, 4), np.float64)
    _, _, zero = best_centroids(counts, counts * np.linspace(-4, 4, 400), 200, 32, wish)
    assert zero == wish if wish == 16 else zero in (15, 16)
