"""The kernels for the CPU and those for any device give the same results, bit for bit."""

import math

import numba.core.caching
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pushcen.codec.clustering
from pushcen.codec import (
    Accumulator,
    Centroids,
    Cut,
    Dense,
    Fragment,
    Schema,
    accumulate,
    encode,
    numba_kernels,
    numba_loops,
    torch_kernels,
)
from pushcen.codec.bins import Bins, sample_stride
from pushcen.codec.clustering import fit
from pushcen.codec.codebook import Codebook
from pushcen.codec.jit import kernel
from pushcen.codec.optimum import best_centroids
from pushcen.models import LeNet

SIZES = [0, 1, 7, 8, 9, 511, 512, 513, 5000, (1 << 20) + 11]


def layer(size, seed=0):
    return torch.randn(size, generator=torch.Generator().manual_seed(seed)) * 0.05


def index_list(packed, bits, count):
    """Slow and obvious: the bytes as one long number, least significant bit first."""
    number = int.from_bytes(packed.tobytes(), "little")
    return [number >> (bits * i) & ((1 << bits) - 1) for i in range(count)]


@pytest.mark.parametrize("size", SIZES)
def test_histograms_are_equal(size):
    weights = layer(size)
    bins = Bins.fit(weights[:: sample_stride(size)].numpy(), numba_kernels.largest(weights), 32)
    assert numba_kernels.largest(weights) == torch_kernels.largest(weights)
    for ours, theirs in zip(
        numba_kernels.histogram(weights, bins), torch_kernels.histogram(weights, bins), strict=True
    ):
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("clusters", [2, 3, 32, 200])
def test_assigned_and_packed_indices_are_equal(size, clusters):
    weights = layer(size)
    cells, bins = fit(weights, clusters)
    bits = math.ceil(math.log2(clusters))
    length = -(-size * bits // 8)
    indices = numba_kernels.assign(weights, cells, bins)
    assert torch.equal(indices, torch_kernels.assign(weights, cells, bins))
    packed = np.zeros((2, length + numba_kernels.SPARE), np.uint8)
    numba_kernels.assign_packed(weights, cells, bins, bits, packed[0])
    torch_kernels.assign_packed(weights, cells, bins, bits, packed[1])
    assert (packed[0, :length] == packed[1, :length]).all()
    if size < 10_000:
        assert index_list(packed[0, :length], bits, size) == indices.tolist()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("bits", range(1, 9))
def test_adding_from_packed_indices_is_equal(size, bits):
    generator = np.random.default_rng(bits)
    length, before = -(-size * bits // 8), layer(3 * size + 5, seed=1)
    packed = generator.integers(0, 256, 3 * length).astype(np.uint8)
    tables = generator.normal(size=(3, 1 << bits)).astype(np.float32)
    spans = np.array([[1, size + 1], [size + 1, 2 * size + 1], [2 * size + 4, 3 * size + 4]])
    sums = before.clone(), before.clone()
    numba_kernels.add_packed(packed, bits, tables, spans, sums[0])
    torch_kernels.add_packed(packed, bits, tables, spans, sums[1])
    assert torch.equal(*sums)
    if size < 10_000:
        for row, table, (begin, end) in zip(packed.reshape(3, length), tables, spans.tolist(), strict=True):
            indices = index_list(row, bits, size)
            before[begin:end] += torch.from_numpy(table[indices])
            assert numba_kernels.highest_index(row, bits, size) == max(indices, default=0)
        assert torch.equal(sums[0], before)


@given(st.data(), st.integers(1, 3), st.integers(2, 5))
def test_tables_are_right_if_each_is_in_order_with_its_zero_and_nothing_is_beyond_the_limit(data, tables, clusters):
    some = st.sampled_from([-(2.0**61), -1.0, -0.0, 0.0, 1.0, 2.0**60, np.inf, np.nan])
    rows = [sorted(data.draw(st.lists(some, min_size=clusters - 1, max_size=clusters - 1))) for _ in range(tables)]
    zeros = data.draw(st.lists(st.integers(0, clusters), min_size=tables, max_size=tables))
    values = np.array([*np.ravel(rows), *data.draw(st.lists(some, max_size=2))], np.float32)
    packed, used = np.array(data.draw(st.lists(st.integers(0, 9), min_size=tables, max_size=tables)), np.uint8), 3
    expected = ""
    if not (np.abs(values) <= 2.0**60).all():
        expected = "value"
    elif max(zeros) >= clusters:
        expected = "zero"
    elif any((np.diff([*row[:at], 0, *row[at:]]) < 0).any() for row, at in zip(rows, zeros, strict=True)):
        expected = "order"
    elif packed.max() >= 1 << used:
        expected = "end"
    places = np.arange(tables), np.full(tables, used, np.uint8)
    found, which = numba_kernels.check_tables(values, np.array(zeros, np.uint8), clusters, packed, *places)
    assert found == expected
    assert which == {"zero": max(zeros), "end": (packed >= 1 << used).argmax()}.get(found, 0)


@pytest.mark.parametrize("size", SIZES)
def test_adding_values_is_equal(size):
    sums = layer(2 * size + 3, seed=1), layer(2 * size + 3, seed=1)
    spans = np.array([[0, size], [size + 2, 2 * size + 2]])
    for kernels, into in zip((numba_kernels, torch_kernels), sums, strict=True):
        kernels.add_values(layer(2 * size).numpy(), 0.3, spans, into)
    assert torch.equal(*sums)
    changed = sums[0] != layer(2 * size + 3, seed=1)
    assert not changed[size : size + 2].any()
    assert not changed[-1]


@given(st.lists(st.floats(-(2.0**60), 2.0**60, width=32), min_size=1, max_size=50), st.integers(2, 256))
def test_bins_keep_the_order_of_values_and_hold_them_all(values, clusters):
    row = np.sort(np.array(values, np.float32)) + 0  # no -0.0, which sorts like 0.0
    bins = Bins.fit(row, float(np.abs(row).max()), clusters)
    steps = located(row, bins)
    assert (np.diff(steps) >= 0).all()
    assert steps.min() >= -bins.half
    assert steps.max() < bins.half
    assert 2 * bins.half < 100_000
    assert located(np.float32([0]), bins) == [0]


def located(row, bins):
    """How many bins from zero each value lies, with room for those beyond the outermost to show."""
    _, bits, knee, base, half, shift = numba_kernels._views(torch.from_numpy(row), bins)
    places = np.empty(row.size, np.int32)
    numba_loops.locate(row, bits, knee, base, np.int32(2 * half), shift, places)
    return places - 2 * half


def test_what_is_exactly_zero_has_the_zero_index_even_among_equal_centroids():
    cells = Codebook.nearest(np.array([0.0, 0.0, 0.0, 0.0, 2.0]), zero_index=2)
    bins = Bins(np.float32(1), 14, 2000)
    assert numba_kernels.assign(torch.zeros(3), cells, bins).tolist() == [2, 2, 2]


def test_the_optimum_on_bins_ends_when_there_are_fewer_bins_than_centroids():
    below, above, zero = best_centroids(np.array([0.0, 3.0, 4.0, 1.0]), np.array([0, -3.0, 0, 9.0]), 2, 8, 4)
    assert (below.tolist(), above.tolist(), zero) == ([-1.0], [9.0], 4)


@pytest.mark.parametrize(
    "codec", [Centroids(32), Centroids(7), Centroids(32, profile="paper"), Dense("float16")], ids=str
)
def test_a_whole_message_is_the_same_on_any_device(codec, monkeypatch):
    model = LeNet(10)
    schema = Schema.of(model)
    messages, sums = [], []
    for kernels in (numba_kernels, torch_kernels):
        monkeypatch.setattr(pushcen.codec.clustering, "numba_kernels", kernels)
        into = Accumulator.zeros(schema)
        messages.append(encode(model, codec).data)
        accumulate(messages[-1], 3, into)
        sums.append(into.total)
    assert messages[0] == messages[1]
    assert torch.equal(*sums)


def test_a_fragment_lands_in_the_places_that_its_cut_names():
    model = LeNet(10)
    into = Accumulator.zeros(Schema.of(model))
    accumulate(encode(model, Fragment(2, Cut(5, cut_seed=9))), 2, into)
    row = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    places = torch.from_numpy(Cut(5, cut_seed=9).places(2, 0, row.numel()))
    assert torch.equal(into.total, torch.zeros_like(row).index_copy(0, places, 2 * row[places]))


def test_kernels_compile_where_nothing_can_be_kept(monkeypatch):
    monkeypatch.setattr(numba.core.caching.CompileResultCacheImpl, "_locator_classes", [])
    assert kernel(lambda x: 2 * x)(21) == 42
