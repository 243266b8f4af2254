"""Clustering: as good as the optimum, nearest, sorted, with a zero that stays zero."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pushcen.bench.plain import least_error
from pushcen.codec import ModelError, OptionError, cluster

WEIGHTS = arrays(
    np.float32, st.integers(0, 300), elements=st.floats(-100, 100, width=32) | st.sampled_from([0.0, 1.0, -1.0])
)


def brute_force_error(values, clusters):
    """Every way to cut the sorted values into cells, every choice of the cell at zero."""
    x = np.sort(values.astype(np.float64))

    def best(rest, cells, zero_used):
        if not len(rest):
            return 0.0
        if cells == 0:
            return np.inf
        options = []
        for end in range(1, len(rest) + 1):
            cell = rest[:end]
            if zero_used or cells > 1:
                options.append(((cell - cell.mean()) ** 2).sum() + best(rest[end:], cells - 1, zero_used))
            if not zero_used:
                options.append((cell**2).sum() + best(rest[end:], cells - 1, True))
        return min(options)

    return best(x, clusters, False) / len(x)


def error(found, weights):
    return float((found.decode() - weights).double().square().mean())


def shapes(seed, size=1200):
    """Layers as they are found: bell-shaped, peaked, heavy-tailed, skewed, in two heaps, pruned."""
    generator = torch.Generator().manual_seed(seed)
    normal = torch.randn(size, generator=generator)
    return {
        "normal": normal,
        "peaked": normal**3,
        "heavy": normal / torch.rand(size, generator=generator).clamp_min(0.01),
        "positive": normal.abs() + 0.5,
        "two heaps": torch.where(torch.rand(size, generator=generator) < 0.3, normal * 0.1 + 2, normal * 0.3 - 1),
        "pruned": torch.where(normal.abs() < 1, 0, normal),
        "tiny": normal * 1e-8,
        "large": normal * 1e8,
    }


@given(arrays(np.float32, st.integers(1, 7), elements=st.integers(-9, 9)), st.integers(2, 4))
def test_the_judge_agrees_with_brute_force(values, clusters):
    assert least_error(values, clusters) == pytest.approx(brute_force_error(values, clusters), abs=1e-9)


@pytest.mark.parametrize("clusters", [2, 3, 4, 8, 16, 32, 100, 256])
@pytest.mark.parametrize("shape", shapes(0))
def test_distortion_is_the_optimums(shape, clusters):
    weights = shapes(1)[shape]
    found = cluster(weights, clusters)
    assert error(found, weights) <= 1.02 * least_error(weights.numpy(), clusters) + 1e-12 * float(
        weights.square().mean()
    )


@pytest.mark.parametrize("clusters", [3, 4, 8, 16, 32, 64])
@pytest.mark.parametrize("outliers", [[100.0], [1e4], [-1e4], [1e6], [1e4, -3e4, 1.1e4, 1e4 + 30]])
def test_weights_ten_thousand_deviations_out_cost_a_centroid_each_and_no_more(clusters, outliers):
    weights = torch.randn(1500, generator=torch.Generator().manual_seed(3))
    weights[700 : 700 + len(outliers)] = torch.tensor(outliers)
    assert error(cluster(weights, clusters), weights) <= 1.02 * least_error(weights.numpy(), clusters)


@given(WEIGHTS, st.integers(2, 256), st.sampled_from(["default", "paper"]))
def test_tables_are_sorted_and_hold_zero_where_they_say(values, clusters, profile):
    weights = torch.from_numpy(values)
    found = cluster(weights, clusters, profile=profile)
    assert found.centroids.shape == (clusters,)
    assert found.centroids[found.zero_index] == 0
    assert (found.centroids.diff() >= 0).all()
    assert found.indices.shape == weights.shape
    assert (found.decode()[found.mask.logical_not()] == 0).all()
    assert not found.mask[weights == 0].any() or profile == "paper"


@given(WEIGHTS, st.integers(2, 256))
def test_every_weight_goes_to_its_nearest_centroid(values, clusters):
    found = cluster(torch.from_numpy(values), clusters)
    distance = np.abs(values.astype(np.float64)[:, None] - found.centroids.double().numpy())
    taken = np.take_along_axis(distance, found.indices.numpy().astype(int)[:, None], axis=1)[:, 0]
    assert (taken == distance.min(axis=1, initial=np.inf)).all()


@given(arrays(np.float32, st.integers(1, 200), elements=st.sampled_from([-3.0, -0.25, 0.0, 0.1, 0.7, 5.0])))
def test_few_different_values_come_back_exactly(values):
    weights = torch.from_numpy(values)
    assert torch.equal(cluster(weights, 6).decode(), weights)


@pytest.mark.parametrize("clusters", [4, 32, 256])
def test_clustering_what_was_clustered_changes_nothing(clusters):
    once = cluster(shapes(2)["normal"], clusters).decode()
    assert torch.equal(cluster(once, clusters).decode(), once)


@pytest.mark.parametrize("clusters", [4, 8, 16, 32])
@pytest.mark.parametrize("shape", ["normal", "peaked"])
def test_zero_sits_in_the_middle_for_weights_that_lean_to_neither_side(shape, clusters):
    weights = shapes(4, size=200_000)[shape]
    assert cluster(weights, clusters).zero_index == clusters // 2


def test_zero_moves_where_the_middle_would_waste_centroids():
    assert cluster(shapes(5)["positive"], 32).zero_index == 0


def test_zero_stays_where_the_dictionary_has_it():
    weights = shapes(6, size=100_000)["normal"]
    assert cluster(weights, 32, start=torch.linspace(-15, 16, 32)).zero_index == 15


def test_zero_does_not_stay_where_the_dictionary_wastes_centroids():
    weights = shapes(6, size=100_000)["normal"]
    found = cluster(weights, 32, start=torch.linspace(-3, 28, 32))
    assert found.zero_index in (15, 16)
    assert error(found, weights) <= 1.02 * error(cluster(weights, 32), weights)


def test_an_unused_centroid_keeps_the_value_it_started_with():
    found = cluster(torch.full((5,), 0.1), 4, start=torch.tensor([-1.0, 0.0, 0.5, 2.0]))
    assert found.centroids.tolist() == pytest.approx([-1.0, 0.0, 0.1, 2.0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("profile", ["default", "paper"])
def test_layers_of_any_kind_just_work(dtype, profile):
    for weights in (
        torch.zeros(3, 4),
        torch.full((3, 4), -2.5),
        torch.ones(1),
        torch.empty(0),
        torch.empty(3, 0),
        torch.randn(6, 8).t()[::2],
    ):
        found = cluster(weights.to(dtype), 8, profile=profile)
        assert found.indices.shape == weights.shape
        if profile == "default" and weights.unique().numel() < 8:
            assert torch.equal(found.decode(), weights)


def test_weights_that_are_not_finite_are_refused():
    for bad in (float("nan"), float("inf"), 2.0**61):
        with pytest.raises(ModelError, match="finite"):
            cluster(torch.tensor([0.0, bad]))


@pytest.mark.parametrize("clusters", [1, 0, -3, 257, 2.5, "8"])
def test_a_number_of_clusters_out_of_range_is_refused(clusters):
    with pytest.raises(OptionError, match=r"clusters = .* from 2 to 256"):
        cluster(torch.ones(3), clusters)


def test_an_unknown_profile_is_refused():
    with pytest.raises(OptionError, match="profile = 'best': must be one of default, paper"):
        cluster(torch.ones(3), profile="best")


@pytest.mark.parametrize("start", [torch.zeros(3), torch.tensor([0.0, float("nan"), 1.0, 2.0])])
def test_a_start_that_does_not_fit_is_refused(start):
    with pytest.raises(OptionError, match="must be 4 finite values"):
        cluster(torch.ones(3), 4, start=start)


def plain_paper(weights, clusters, start, rng):
    """Algorithm 4 as it is written, with a distance matrix, in float64."""
    if start is None:
        mu = np.array([0.0, *weights[rng.choice(weights.size, clusters - 1, replace=weights.size < clusters - 1)]])
    else:
        mu = np.array([0.0, *start[1:]])
    for _ in range(3):
        mu = mu.astype(np.float32).astype(np.float64)
        a = np.abs(weights[:, None] - mu[None, :]).argmin(axis=1)
        for j in range(1, clusters):
            if (a == j).any():
                mu[j] = weights[a == j].mean()
        mu[0] = 0
    return np.sort(mu), mu[a]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("clusters", [2, 5, 32])
def test_the_papers_profile_is_the_papers_algorithm(clusters, seed):
    weights = torch.randn(500, generator=torch.Generator().manual_seed(seed))
    exact = weights.double().numpy()
    found = cluster(weights, clusters, profile="paper", rng=np.random.default_rng(seed))
    table, decoded = plain_paper(exact, clusters, None, np.random.default_rng(seed))
    np.testing.assert_allclose(found.centroids.numpy(), table, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found.decode().numpy(), decoded, rtol=1e-6, atol=1e-7)
    again = cluster(weights + 0.1, clusters, profile="paper", start=found.centroids)
    table, decoded = plain_paper((weights + 0.1).double().numpy(), clusters, found.centroids.double().numpy(), None)
    np.testing.assert_allclose(again.centroids.numpy(), table, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(again.decode().numpy(), decoded, rtol=1e-6, atol=1e-7)


def test_the_papers_start_is_drawn_by_the_given_generator():
    weights = shapes(7)["normal"]
    tables = [cluster(weights, 8, profile="paper", rng=np.random.default_rng(seed)).centroids for seed in (1, 1, 2)]
    assert torch.equal(tables[0], tables[1])
    assert not torch.equal(tables[0], tables[2])
