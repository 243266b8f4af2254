"""Messages: of the length foretold, read back as they were, merged without decoding."""

import math
import tracemalloc
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from pushcen.codec import (
    Accumulator,
    Centroids,
    Cut,
    Dense,
    Fragment,
    Lean,
    ModelError,
    OptionError,
    Payload,
    PayloadError,
    Reference,
    Schema,
    accumulate,
    cluster,
    decode,
    encode,
    payload_size,
    read_reference,
)
from pushcen.codec.cost import schema_bytes
from pushcen.models import LeNet, resnet18
from tests.codec.models import Mixed, example

CODECS = [Centroids(2), Centroids(5), Centroids(32), Centroids(256), Dense(), Dense("float16"), Lean(4.0)]
FRAGMENTS = [Fragment(part, Cut(3, cut_seed=5)) for part in range(3)]


def state(model, schema):
    return dict(zip([entry.name for entry in schema.entries], schema.tensors(model), strict=True))


@pytest.mark.parametrize("codec", CODECS + FRAGMENTS, ids=str)
@pytest.mark.parametrize("make", [Mixed, example, lambda: LeNet(10), lambda: nn.Linear(3, 1)])
def test_a_message_has_the_length_foretold_and_parses_to_itself(make, codec):
    model = make()
    schema = Schema.of(model)
    payload = encode(model, codec)
    assert len(payload) == len(payload.data) == payload_size(schema, codec)
    again = Payload.parse(payload.data, schema)
    assert (again.data, again.codec, again.reference) == (payload.data, codec, None)


@pytest.mark.parametrize("clusters", [2, 3, 7, 8, 32, 100, 256])
@pytest.mark.parametrize("make", [lambda: LeNet(10), lambda: resnet18(100), lambda: nn.Linear(300, 1)])
def test_real_messages_are_as_short_as_the_formula_for_what_they_send(make, clusters):
    schema = Schema.of(make())
    formula = schema_bytes(schema, clusters)
    assert abs(payload_size(schema, Centroids(clusters)) - formula) <= 0.005 * formula + 64


@pytest.mark.parametrize("clusters", range(2, 257))
def test_indices_take_exactly_the_bits_they_need(clusters):
    schema = Schema.of(nn.Linear(8000, 1, bias=False))
    other = Schema.of(nn.Linear(16000, 1, bias=False))
    sizes = [Centroids(clusters).size(s) for s in (schema, other)]
    assert sizes[1] - sizes[0] == 8000 * math.ceil(math.log2(clusters)) / 8


@pytest.mark.parametrize("clusters", [2, 3, 32, 33, 256])
def test_decoding_gives_each_layers_clusters_and_the_rest_unchanged(clusters):
    model = Mixed()
    schema = Schema.of(model)
    payload = encode(model, Centroids(clusters))
    decoded, tables = decode(payload), payload.tables()
    for entry, tensor in zip(schema.entries, schema.tensors(model), strict=True):
        if entry.clustered:
            found = cluster(tensor, clusters)
            assert torch.equal(decoded[entry.name], found.decode())
            assert torch.equal(tables[entry.name], found.centroids)
        else:
            assert torch.equal(decoded[entry.name], tensor)
    assert set(tables) == {entry.name for entry in schema.clustered}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_dtypes_are_restored(dtype):
    model = nn.Linear(5, 4).to(dtype)
    for codec in (Centroids(256), Dense()):
        decoded = decode(encode(model, codec))
        assert {tensor.dtype for tensor in decoded.values()} == {dtype}
        torch.testing.assert_close(decoded["weight"], model.weight.detach(), rtol=1e-6, atol=1e-6)


def test_empty_and_strided_layers_just_work():
    model = nn.Module()
    model.empty = nn.Parameter(torch.empty(0, 3))
    model.turned = nn.Parameter(torch.randn(6, 8).t())
    model.one = nn.Linear(1, 1)
    decoded = decode(encode(model, Centroids(64)))
    assert decoded["empty"].shape == (0, 3)
    torch.testing.assert_close(decoded["turned"], model.turned.detach())
    assert torch.equal(decoded["one.weight"], model.one.weight)


def test_encoding_does_not_touch_the_model():
    model = example()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    encode(model)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("codec", CODECS, ids=str)
def test_a_weight_that_is_not_finite_is_refused_by_its_tensors_name(codec):
    for name in ("0.bias", "3.weight"):
        model = example()
        with torch.no_grad():
            model.get_parameter(name).view(-1)[-1] = float("nan")
        with pytest.raises(ModelError, match=f"{name} has a value that is not finite"):
            encode(model, codec)


def test_a_weight_too_large_for_float16_is_refused_by_its_tensors_name():
    model = example()
    with torch.no_grad():
        model[3].bias[0] = 1e5
    with pytest.raises(ModelError, match=r"3.bias has a value of 100000, too large for float16"):
        encode(model, Dense("float16"))


def test_the_paper_profile_and_a_start_reach_every_layer():
    model = LeNet(10)
    plain = encode(model, Centroids(8, profile="paper", rng=np.random.default_rng(3)))
    warm = encode(model, Centroids(8, profile="paper", start=plain.tables()))
    found = cluster(model.fc2.weight, 8, profile="paper", start=plain.tables()["fc2.weight"])
    assert torch.equal(warm.tables()["fc2.weight"], found.centroids)
    assert torch.equal(decode(warm)["fc2.weight"], found.decode())


@given(st.lists(st.tuples(st.sampled_from(CODECS), st.integers(1, 2**50)), min_size=1, max_size=5))
def test_merging_is_the_weighted_mean_of_what_was_sent(sent):
    schema = Schema.of(example())
    into = Accumulator.zeros(schema)
    expected = {entry.name: torch.zeros(entry.shape, dtype=torch.float64) for entry in schema.entries}
    total = 0
    for number, (codec, weight) in enumerate(sent):
        model = example()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(number + 1)
        payload = encode(model, codec)
        accumulate(payload.data, weight, into)
        for name, tensor in decode(payload).items():
            expected[name] += weight * tensor.double()
        total += weight
    assert into.weight == total
    target = example()
    into.write_mean(target)
    for name, tensor in state(target, schema).items():
        torch.testing.assert_close(tensor.detach().double(), expected[name] / total, rtol=1e-5, atol=1e-6)


def test_fragments_are_averaged_over_oneself_and_those_who_sent_them():
    schema = Schema.of(example())
    mine, theirs = example(), example()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.fill_(4.0)
        for parameter in mine.parameters():
            parameter.fill_(1.0)
    into = Accumulator.zeros(schema)
    into.add_model(mine, 1)
    cut = Cut(3, cut_seed=5)
    for part in (0, 0, 2):
        accumulate(encode(theirs, Fragment(part, cut)), 1, into)
    places = [cut.places(part, 0, schema.size) for part in range(3)]
    assert [into.weights()[place].unique().tolist() for place in places] == [[3.0], [1.0], [2.0]]
    into.write_mean(mine)
    row = Reference.of(mine).row
    assert [row[place].unique().tolist() for place in places] == [[3.0], [1.0], [2.5]]


def test_a_coordinate_that_got_no_weight_keeps_its_value():
    schema = Schema.of(example())
    model, into, cut = example(), Accumulator.zeros(schema), Cut(2)
    before = Reference.of(model).row
    with torch.no_grad():
        model[3].bias.add_(1)
    accumulate(encode(model, Fragment(1, cut)), 2, into)
    target = example()
    into.write_mean(target)
    places = cut.places(0, 0, schema.size)
    assert torch.equal(Reference.of(target).row[places], before[places])
    assert not torch.equal(Reference.of(target).row, before)


@given(st.integers(1, 40), st.integers(0, 2**64 - 1), st.integers(0, 200), st.integers(0, 200))
def test_every_coordinate_is_in_exactly_one_fragment(parts, seed, begin, count):
    cut = Cut(parts, seed)
    found = [cut.places(part, 0, count) for part in range(parts)]
    assert sorted(np.concatenate(found).tolist()) == list(range(count))
    assert [len(places) for places in found] == [cut.size(part, count) for part in range(parts)]
    assert max(map(len, found)) - min(map(len, found)) <= 1
    for places, part in zip(found, range(parts), strict=True):
        inner = cut.places(part, min(begin, count), count)
        assert inner.tolist() == [place for place in places.tolist() if place >= begin]


def test_fragments_cut_in_another_way_are_refused_and_change_nothing():
    schema = Schema.of(example())
    into = Accumulator.zeros(schema)
    accumulate(encode(example(), Fragment(0, Cut(3))), 1, into)
    before = into.total.clone()
    with pytest.raises(
        PayloadError, match=r"cut by Cut\(parts=4, cut_seed=0\), and those .* by Cut\(parts=3, cut_seed=0\)"
    ):
        accumulate(encode(example(), Fragment(0, Cut(4))), 1, into)
    assert torch.equal(into.total, before)
    assert into.extra == [1, 0, 0]


def test_a_fragment_alone_is_no_model():
    with pytest.raises(OptionError, match="only a part of a model"):
        decode(encode(example(), FRAGMENTS[0]))


@pytest.mark.parametrize("codec", [*CODECS, *FRAGMENTS], ids=str)
def test_a_difference_to_a_reference_merges_like_the_model_itself(codec):
    base, model = example(), example()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.linspace(-0.01, 0.01, parameter.numel()).view(parameter.shape))
    reference = Reference.of(base)
    payload = Payload.parse(encode(model, codec, reference=reference).data, Schema.of(model))
    assert payload.reference == reference.fingerprint
    into = Accumulator.zeros(Schema.of(model))
    accumulate(payload, 2, into, reference=reference)
    covered = into.weights() > 0
    assert covered.any()
    row = Reference.of(model).row
    error = (
        0.012 if codec in (Centroids(2), Lean(4.0)) else 0.006
    )  # half the distance between two centroids of the difference
    torch.testing.assert_close(into.total[covered] / 2, row[covered], rtol=0, atol=error)


def test_differences_need_fewer_bits_for_the_same_error():
    base, model = LeNet(10), LeNet(10)
    model.load_state_dict(base.state_dict())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * parameter.std() * torch.randn_like(parameter) if parameter.numel() > 1 else 0)
    reference = Reference.of(base)

    def error(clusters, ref):
        decoded = decode(
            encode(
                model,
                Centroids(
                    clusters,
                ),
                reference=ref,
            ),
            reference=ref,
        )
        return float((decoded["fc1.weight"] - model.fc1.weight).detach().square().mean())

    assert error(4, reference) < error(32, None)


def test_a_reference_that_is_missing_wrong_or_not_needed_is_refused():
    model = example()
    reference, other = Reference.of(model), Reference.of(LeNet(10))
    into = Accumulator.zeros(Schema.of(model))
    with pytest.raises(PayloadError, match=f"payload is the difference to {reference.fingerprint.hex()}.*stands alone"):
        accumulate(encode(model, reference=reference).data, 1, into)
    with pytest.raises(PayloadError, match="payload stands alone"):
        accumulate(encode(model), 1, into, reference=reference)
    with pytest.raises(ModelError, match="the schemas differ"):
        encode(model, reference=other)
    assert not into.total.any()


def test_another_models_message_is_refused_by_the_first_difference():
    into = Accumulator.zeros(Schema.of(nn.Linear(3, 2)))
    with pytest.raises(ModelError, match=r"weight \[2, 3\] float32 clustered / weight \[2, 4\] float32 clustered"):
        accumulate(encode(nn.Linear(4, 2)), 1, into)


@pytest.mark.parametrize("weight", [-1, float("nan"), float("inf"), 2.0**201])
def test_a_weight_that_cannot_be_is_refused(weight):
    into = Accumulator.zeros(Schema.of(example()))
    with pytest.raises(OptionError, match=r"weight = .* must be a number between 0 and"):
        accumulate(encode(example()), weight, into)
    assert into.weight == 0


def test_the_largest_values_and_weights_do_not_overflow():
    model = example()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(2.0**60)
    into = Accumulator.zeros(Schema.of(model))
    for _ in range(16):
        accumulate(encode(model), 2**60, into)
    into.write_mean(model)
    assert (model[3].weight == 2.0**60).all()


def test_no_mean_of_nothing():
    with pytest.raises(ModelError, match="nothing has been accumulated"):
        Accumulator.zeros(Schema.of(example())).write_mean(example())


def test_merging_holds_no_decoded_model():
    """Beside the accumulator, merging takes less than a hundredth of a model."""
    model = resnet18(100)
    schema = Schema.of(model)
    payload = encode(model, schema=schema)
    into = Accumulator.zeros(schema)
    accumulate(payload, 1, into)
    peaks = []
    for _ in range(12):
        tracemalloc.start()
        accumulate(payload, 1, into)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert min(peaks) < 0.01 * 4 * schema.size  # what other threads may hold is not ours


def test_a_message_keeps_nothing_that_only_its_sender_needs():
    start = {"weight": torch.linspace(-1, 1, 32)}
    dictionary = weakref.ref(start["weight"])
    message = encode(nn.Linear(40, 10), Centroids(32, start=start, rng=np.random.default_rng(0), feedback=True))
    del start
    assert dictionary() is None
    assert message.codec == Centroids(32)


def test_a_reference_is_added_once_for_all_messages_that_build_upon_it():
    """Merging ten differences adds their reference with the sum of their weights, folds and all; so does any reader."""
    model, schema = example(), Schema.of(example())
    reference, other = Reference.of(_moved(example()), schema), Reference.of(_moved(_moved(example())), schema)
    messages = [encode(model, Dense(), schema=schema, reference=r) for r in (reference, other, reference)]
    into, plain = Accumulator.zeros(schema), Accumulator.zeros(schema)
    for weight, message in enumerate(messages, 1):
        accumulate(message, weight, into)
        plain.add_model(model, weight)
    assert torch.equal(into.row, sum(w * (_row(model) - m.base.row) for w, m in enumerate(messages, 1)))
    folded = Accumulator.zeros(schema)
    accumulate(messages[0], 2, folded)
    plain.add_model(model, 2)
    into.add(folded)
    torch.testing.assert_close(into.total, plain.total)
    assert into.row is into.total
    assert into.weight == plain.weight == 8


def test_a_message_that_is_read_with_its_reference_keeps_it():
    model, schema = example(), Schema.of(example())
    reference = read_reference(encode(_moved(example()), schema=schema))
    data = encode(model, schema=schema, reference=reference).data
    message = Payload.parse(data, schema, {reference.fingerprint: reference})
    assert message.base is reference
    assert Payload.parse(data, schema).base is None
    torch.testing.assert_close(decode(message)["0.weight"], model[0].weight.detach(), atol=0.2, rtol=0)


def test_only_a_whole_model_that_stands_alone_can_be_a_reference():
    schema = Schema.of(example())
    alone = encode(example(), schema=schema)
    for payload in (encode(example(), schema=schema, reference=read_reference(alone)), encode(example(), FRAGMENTS[0])):
        with pytest.raises(PayloadError, match="must be a whole model that stands alone"):
            read_reference(payload)


def _moved(model):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.25)
    return model


def _row(model):
    return torch.cat([tensor.detach().flatten() for tensor in Schema.of(model).tensors(model)])


def test_a_sum_that_nobody_reads_does_not_hold_on_to_every_reference():
    """A peer that has trained enough goes on folding messages while references move."""
    model, alive = LeNet(10), []
    schema = Schema.of(model)
    into, plain = Accumulator.zeros(schema), torch.zeros(schema.size, dtype=torch.float64)
    for seed in range(40):
        near = Reference.named(schema, torch.randn(schema.size, generator=torch.Generator().manual_seed(seed)))
        payload = encode(model, Dense(), reference=near)
        accumulate(payload, 1, into)
        plain += torch.cat([tensor.flatten() for tensor in decode(payload).values()]).double()
        alive.append(weakref.ref(near))
        del near, payload
    assert sum(one() is not None for one in alive) <= 8
    torch.testing.assert_close(into.total.double(), plain, rtol=1e-5, atol=1e-4)
