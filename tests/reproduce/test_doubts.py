"""Methods that could explain PushCen lean away: their messages are what they are called, and of lean's length."""

import pytest
import torch
from torch import nn

from pushcen.codec import Lean, Payload, Reference, Schema, decode_row, encode, encode_row, payload_size
from pushcen.methods import method_named
from pushcen.reproduce.doubts import Alone, Nothing, Stochastic, Ternary

MODEL = nn.Sequential(nn.Linear(600, 200), nn.Linear(200, 100))
SCHEMA = Schema.of(MODEL)
FIRST = next(place for entry, place in SCHEMA.slices if entry.clustered)
ROW = torch.randn(SCHEMA.size, generator=torch.Generator().manual_seed(3)) * 0.01


@pytest.mark.parametrize("codec", [Nothing, Alone, Stochastic, Ternary])
@pytest.mark.parametrize("bits", [0.3, 0.93, 1.86])
def test_messages_are_as_long_as_leans_and_parse(codec, bits):
    payload = encode_row(ROW, codec(bits), SCHEMA)
    assert len(payload) == payload_size(SCHEMA, Lean(bits)) + len(codec.mark)
    assert torch.equal(decode_row(Payload.parse(payload.data, SCHEMA)), decode_row(payload))


def test_references_only_say_nothing_else():
    start = Reference.of(nn.Sequential(nn.Linear(600, 200), nn.Linear(200, 100)), SCHEMA)
    payload = encode(MODEL, Nothing(0.05), schema=SCHEMA, reference=start)
    assert torch.equal(decode_row(payload, start), start.row)


def test_stochastic_rounding_is_right_on_average():
    draws = [decode_row(encode_row(ROW * (1 + 1e-6 * i), Stochastic(0.93, feedback=False), SCHEMA)) for i in range(200)]
    one, mean = draws[0][FIRST], torch.stack(draws).mean(dim=0)[FIRST]
    wanted = ROW[FIRST]
    assert torch.equal(draws[0], decode_row(encode_row(ROW, Stochastic(0.93, feedback=False), SCHEMA)))
    noise = (one - wanted).square().mean().sqrt()
    assert (mean - wanted).square().mean().sqrt() < 1.3 * noise / 200**0.5
    assert (one * wanted).sum() / wanted.square().sum() == pytest.approx(1, abs=0.05)


def test_ternary_messages_keep_the_largest():
    found = decode_row(encode_row(ROW, Ternary(0.93), SCHEMA))[FIRST]
    wanted, kept = ROW[FIRST], found.abs() > 1e-4  # zeros may be next to nothing
    assert found.abs().unique().numel() == 2
    assert wanted[kept].abs().min() >= wanted[~kept].abs().max()
    assert float(found[kept].abs().mean()) == pytest.approx(float(wanted[kept].abs().mean()), rel=0.01)
    assert 0.15 < kept.float().mean() < 0.2


@pytest.mark.parametrize("name", ["ReferencesOnly", "NoReference", "StochasticRounding", "SparseTernary"])
def test_they_are_methods_by_name(name):
    method = method_named(f"pushcen.reproduce.doubts:{name}")(bits=0.5)
    update = method.update()
    assert update.codecs()[0].bits == 0.5
    assert (update.moves, method.moves > 0) == ((False, False) if name == "NoReference" else (True, True))
