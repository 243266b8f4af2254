"""A lean message has the bits it was given, spends them where they help most, and leaves nothing out for good."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from pushcen.codec import Accumulator, Centroids, Lean, Payload, Reference, Schema, accumulate, decode, encode
from pushcen.codec.blocks import Layout
from pushcen.codec.rates import Histogram, choose, within
from pushcen.errors import ModelError, OptionError, PayloadError
from pushcen.learning import TrainingOptions
from pushcen.methods import PushSum
from pushcen.models import LeNet
from pushcen.simulation import World, simulate_world
from tests.codec.test_hostile import mutate
from tests.runtime.tasks import digits


def moved(model, by=3e-3, seed=0):
    """The model as it is, as a reference; then moved."""
    before = Reference.of(model)
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += by * torch.randn(parameter.shape, generator=draw)
    return before


def row_of(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@pytest.mark.parametrize("bits", [0.1, 0.3, 0.5, 1.0, 2.0, 3.0])
def test_a_message_has_the_bits_it_was_given(bits):
    model = LeNet(10)
    reference = moved(model)
    payload = encode(model, Lean(bits), reference=reference)
    size = reference.schema.size
    assert bits * size / 8 <= len(payload) <= bits * size / 8 + 60
    rest = np.frombuffer(payload.data, np.uint8)[::-1]
    assert (rest != 0).argmax() <= 0.05 * len(payload) + 16, "hardly any of it is empty"


@pytest.mark.parametrize(("bits", "most"), [(0.3, 0.79), (0.5, 0.65), (1.0, 0.37), (2.0, 0.1)])
def test_the_error_is_near_what_so_many_bits_allow(bits, most):
    """A Gaussian source cannot have less than 4 ** -bits; levels and an entropy coder are a quarter of a bit off."""
    model = nn.Linear(500, 400)
    reference = moved(model)
    got = decode(encode(model, Lean(bits), reference=reference), reference=reference)["weight"]
    error = float(((got - model.weight.detach()) ** 2).mean()) / 9e-6
    assert 4**-bits < error < most


def test_at_the_same_size_it_is_much_nearer_than_centroids_without_entropy_coding():
    model = LeNet(10)
    reference = moved(model)
    errors = []
    for codec in (Lean(2.0), Centroids(4)):
        got = decode(encode(model, codec, reference=reference), reference=reference)
        errors.append(sum(float(((got[name] - value) ** 2).sum()) for name, value in model.state_dict().items()))
    assert errors[0] < 0.9 * errors[1]


def test_levels_agree_with_a_slow_search():
    """No shift of a threshold by a bin makes error plus price times bits smaller by more than a thousandth."""
    values = np.random.default_rng(3).laplace(size=20_000).astype(np.float32)
    histogram = Histogram.of([values], float(np.abs(values).max()))
    price = 0.2
    choice = choose(histogram, price)

    def cost(begins):
        edges = [histogram.edge(begin) for begin in begins]
        level = np.searchsorted(edges, np.abs(values), side="right")
        error = bits = 0.0
        for at in range(len(begins) + 1):
            inside = np.abs(values[level == at])
            if inside.size:
                error += float(((inside - (inside.mean() if at else 0)) ** 2).sum())
                bits -= inside.size * (np.log2(inside.size / values.size) - (at > 0))
        return error + price * bits

    found = cost(choice.begins)
    for at in range(len(choice.begins)):
        for by in (-8, -3, -1, 1, 3, 8):
            other = choice.begins.copy()
            other[at] += by
            assert cost(other) > 0.999 * found


def test_one_price_divides_the_bits_among_blocks():
    draw = np.random.default_rng(0)
    wide, narrow = (draw.normal(0, width, 50_000).astype(np.float32) for width in (1.0, 0.01))
    counted = [Histogram.of([values], float(np.abs(values).max())) for values in (wide, narrow)]
    first, second = within(counted, 50_000, 0)
    assert 0.95 * 50_000 <= first.bits + second.bits <= 50_000
    assert second.values.size == 0, "what hardly varies is worth nothing"


def test_what_is_left_out_comes_later():
    model = nn.Linear(100, 50)
    reference = moved(model)
    left, total, want = torch.zeros(5050), torch.zeros(5050), row_of(model)
    for turn in range(1, 41):
        into = Accumulator.zeros(reference.schema)
        accumulate(encode(model, Lean(0.5), reference=reference, left=left), 1, into, reference=reference)
        total += into.total
        assert torch.allclose(total + left, turn * want, atol=1e-5 * turn)
    assert float((total / 40 - want).norm()) < 0.5 * float((want - reference.row).norm())


@pytest.mark.parametrize("bits", [0.5, 1.0, 2.0])
def test_without_feedback_the_error_has_nothing_to_do_with_what_is_sent(bits):
    model = LeNet(10)
    reference = moved(model)
    want = row_of(model) - reference.row
    along, noise = {}, {}
    for feedback in (False, True):
        into = Accumulator.zeros(reference.schema)
        accumulate(encode(model, Lean(bits, feedback), reference=reference), 1, into, reference=reference)
        error = into.total - reference.row - want
        along[feedback], noise[feedback] = float(error @ want / (want @ want)), float(error @ error / (want @ want))
    assert abs(along[False]) < 0.01
    assert along[True] == pytest.approx(-noise[True], rel=0.05), "means of levels are too near to zero, by their error"
    assert noise[False] == pytest.approx(noise[True] / (1 - noise[True]), rel=0.05)


def test_without_feedback_the_mean_of_many_clients_arrives_as_far_as_they_have_come():
    """Each is somewhere else around the mean, which is what lets thresholds see small differences."""
    torch.manual_seed(1)
    model = nn.Linear(200, 100, bias=False)
    reference, common = Reference.of(model), 1e-3 * torch.randn(20_000)
    far = {}
    for feedback in (False, True):
        into = Accumulator.zeros(reference.schema)
        for _ in range(40):
            with torch.no_grad():
                model.weight.copy_((reference.row + common + 3e-3 * torch.randn(20_000)).view(100, 200))
            accumulate(encode(model, Lean(0.9, feedback), reference=reference), 1, into, reference=reference)
        far[feedback] = float((into.total / 40 - reference.row) @ common / (common @ common))
    assert far[False] == pytest.approx(1, abs=0.05)
    assert far[True] < 0.8


def test_a_message_without_feedback_is_nearer_than_one_that_makes_up_for_others():
    model = LeNet(10)
    reference, left, draw = moved(model), torch.zeros(Schema.of(model).size), torch.Generator().manual_seed(4)
    errors = {False: 0.0, True: 0.0}
    for _ in range(6):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 1e-3 * torch.randn(parameter.shape, generator=draw)
        for feedback in errors:
            into, kept = Accumulator.zeros(reference.schema), left if feedback else None
            accumulate(encode(model, Lean(0.9, feedback), reference=reference, left=kept), 1, into, reference=reference)
            errors[feedback] += float((into.total - row_of(model)).square().sum())
    assert errors[False] < 0.7 * errors[True]


def test_values_are_never_larger_than_a_receiver_takes():
    model = nn.Linear(90, 90, bias=False)
    start = Reference.of(model)
    with torch.no_grad():
        model.weight.copy_(2.0**59 * torch.randn(90, 90).clamp(-2, 2))
    data = encode(model, Lean(1.0, feedback=False), reference=start).data
    [block], _ = Layout.of(start.schema).read(Payload.parse(data, start.schema).body)
    assert 2.0**59 < block.values.max() <= 2.0**60


@pytest.mark.parametrize("make", [
    lambda: nn.Linear(1, 1), lambda: nn.Linear(3, 2, bias=False), lambda: nn.LayerNorm(5), lambda: nn.Linear(0, 3),
    lambda: nn.Sequential(nn.Linear(70, 70), nn.Linear(70, 5), nn.Linear(5, 1)),
])  # fmt: skip
@pytest.mark.parametrize("by", [0.0, 1e-30, 1.0, 1e15])
def test_any_model_goes_there_and_back(make, by):
    model = make()
    reference = moved(model, by)
    payload = encode(model, Lean(4.0), reference=reference)
    again = Payload.parse(payload.data, reference.schema)
    got = torch.cat([value.flatten() for value in decode(again, reference=reference).values()])
    assert torch.isfinite(got).all()
    if not by:
        assert torch.equal(got, reference.row)


def test_a_row_of_one_value_and_zeros_is_sent():
    model = nn.Linear(100, 100, bias=False)
    reference = Reference.of(model)
    with torch.no_grad():
        model.weight[3, 5] += 1.0
    got = decode(encode(model, Lean(0.2), reference=reference), reference=reference)["weight"]
    assert torch.allclose(got, model.weight, atol=0.01)


def test_the_same_weights_give_the_same_bytes_and_add_up_in_one_pass():
    model = LeNet(10)
    reference = moved(model)
    one, other = (encode(model, Lean(0.5), reference=reference) for _ in range(2))
    assert one.data == other.data
    into = Accumulator.zeros(reference.schema)
    accumulate(one, 3, into, reference=reference)
    single = decode(one, reference=reference)
    assert torch.allclose(into.total / 3, torch.cat([value.flatten() for value in single.values()]), atol=1e-6)


def test_bits_are_what_the_header_can_say():
    assert Lean(1 / 3) == Lean(0.333)
    assert encode(nn.Linear(50, 50), Lean(1 / 3)).codec.bits == 0.333


def test_what_it_cannot_do_is_refused():
    with pytest.raises(OptionError, match=r"bits = 0: must be a number from 0\.05 to 4"):
        Lean(0)
    model = nn.Linear(3, 2)
    reference = moved(model, float("nan"))
    with pytest.raises(ModelError, match="weight has a value that is not finite"):
        encode(model, Lean(), reference=reference)
    schema = Schema.of(nn.Linear(3, 2))
    with pytest.raises(PayloadError):
        Payload.parse(encode(nn.Linear(3, 2), Lean(2.0)).data[:-4], schema)


def test_clients_that_send_a_bit_a_number_learn_as_much_as_those_that_send_all():
    results = {}
    for codec in ("dense", "lean"):
        world = World(PushSum(codec=codec, receivers=3), TrainingOptions(batch=16), clients=4, horizon=4.0, seed=3)
        results[codec] = simulate_world(world, digits)
    assert all(result["meters"]["mass"]["exact"] for result in results.values())
    sent = [result["traffic"]["bytes_sent"] for result in results.values()]
    assert sent[1] < sent[0] / 25
    accuracy = [result["final"]["accuracy"] for result in results.values()]
    assert accuracy[1] > accuracy[0] - 0.1


def coded_example():
    torch.manual_seed(5)
    model = nn.Linear(60, 60)
    data = encode(model, Lean(1.0)).data
    schema = Schema.of(model)
    [block], _ = Layout.of(schema).read(Payload.parse(data, schema).body)
    assert block.values.size, "there are coded levels"
    assert block.length > 50
    return data, schema


def test_mutations_of_coded_levels_are_refused_or_harmless():
    data, schema = coded_example()
    dice, accepted = random.Random(7), 0
    for _ in range(20_000):
        into = Accumulator.zeros(schema)
        try:
            accumulate(mutate(data, dice), 2**60, into)
        except PayloadError:
            assert not into.total.any()
            continue
        accepted += 1
        assert torch.isfinite(into.total).all()
    assert 0 < accepted < 4_000


SHORT = """
import numpy as np
from pushcen.codec import entropy
draw, sound = np.random.default_rng(1), 0
for shares, per, state in (([300, 3496, 300], 4, 11), ([1, 4094, 1], 4, 13), ([273] * 14 + [274], 2, 13)):
    decode, count = entropy.tables(np.array(shares), per, state)[0], len(shares)
    for _ in range(400):
        own, first, size = int(draw.integers(0, 9)), int(draw.integers(32)), int(draw.integers(1, 300))
        words = np.append(draw.integers(0, 2**32, own), [0, 0]).astype(np.uint32)
        sound += bool(entropy.is_sound(words, own, first, size, count, per, state, decode))
print(sound, "sound")
"""


def test_no_stream_makes_a_decoder_look_behind_its_words():
    """Without the compiler numpy checks every index."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run([sys.executable, "-c", SHORT], env=environment, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, "0 sound"), run.stderr
