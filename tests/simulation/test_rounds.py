"""Methods with rounds: what waiting for neighbours costs in pseudo-time; what a meter knows that no client can."""

import pytest
import torch

from pushcen.codec import Dense, Schema, encode_row
from pushcen.learning import ModuloUpdate
from pushcen.learning.rows import row_of
from pushcen.methods import DPsgd, Moniqua, Swift
from pushcen.simulation import ComputeOptions, MeterOptions, NeighbourOptions, NetworkOptions
from pushcen.simulation.meters.wraps import CountWraps
from tests.simulation.worlds import run

GRAPH = NeighbourOptions(kind="graph", degree=4)
EVEN = ComputeOptions(kind="constant", per_event=1.0)


def world(**options):
    return {"neighbours": GRAPH, "compute": EVEN, "horizon": 12.0, **options}


@pytest.mark.parametrize("collect", ["start", "end"])
def test_a_round_takes_as_long_as_computing_and_the_way_of_a_message(collect):
    """Events end at 1, 2.5, 4, ...: each begins when the neighbours' messages of the one before have come."""
    found = run(method=DPsgd(), **world(network=NetworkOptions(latency=0.5), collect=collect))
    assert found["steps"] == 8 * len([1.0, 2.5, 4.0, 5.5, 7.0, 8.5, 10.0, 11.5])
    assert found["final"]["waiting_share"] == pytest.approx((7 * 0.5 + 0.5) / 12)
    assert found["meters"]["events"]["tau_max"] < 2 * 8


@pytest.mark.parametrize(("latency", "horizon"), [(0.0, 10.1), (0.3, 11.0), (0.3, 2.0)])
def test_waiting_is_counted_up_to_the_end_for_those_who_still_wait(latency, horizon):
    """All are neighbours, seven take 0.5 and one takes 3: when each begins and ends each event, by the definition."""
    takes, begins, ends, waited, steps = [0.5] * 7 + [3.0], [0.0] * 8, [0.0] * 8, 0.0, 0
    while min(ends) < horizon:
        ends = [begin + time for begin, time in zip(begins, takes, strict=True)]
        steps += sum(end <= horizon for end in ends)
        begins = [max(end, *(other + latency for other in ends[:i] + ends[i + 1 :])) for i, end in enumerate(ends)]
        waits = [min(begin, horizon) - min(end, horizon) for begin, end in zip(begins, ends, strict=True)]
        waited += sum(waits) / 8 / horizon
    compute = ComputeOptions(kind="constant", per_event=0.5, stragglers=0.125, slowdown=6.0)
    everybody = NeighbourOptions(kind="graph", graph="complete")
    options = world(compute=compute, neighbours=everybody, network=NetworkOptions(latency=latency), horizon=horizon)
    found = run(method=DPsgd(), **options)
    assert found["steps"] == steps
    assert found["final"]["waiting_share"] == pytest.approx(waited)
    assert found["meters"]["waiting"]["client_share"] == pytest.approx(waited)


def test_where_all_are_alike_and_messages_arrive_at_once_nobody_waits():
    found = run(method=DPsgd(), **world())
    assert found["steps"] == 8 * 12
    assert found["meters"]["waiting"] == {"client_share": 0.0, "client_share_sd": 0.0}


def test_all_go_at_the_pace_of_the_slowest():
    slow = world(compute=ComputeOptions(kind="constant", per_event=0.5, stragglers=0.125, slowdown=6.0))
    waits, free = (run(method=method, **slow) for method in (DPsgd(), Swift()))
    assert free["steps"] == 7 * 24 + 4
    assert waits["steps"] <= 8 * 4 + 7 * 2, "two rounds ahead at most: no two are further apart than two links"
    assert 0.6 < waits["final"]["waiting_share"] < 0.75
    assert "waiting_share" not in free["final"]


def test_a_bound_on_bandwidth_makes_rounds_longer():
    narrow = [run(method=DPsgd(), **world(network=NetworkOptions(bandwidth=speed)))["steps"] for speed in (500, 5000)]
    assert narrow[0] < narrow[1] < 8 * 12


@pytest.mark.parametrize("rounds", [True, False])
def test_wraps_are_counted_as_they_happen(monkeypatch, rounds):
    counted, seen, exact = [0], [0], {}
    mix, encode, theta = ModuloUpdate.mix, ModuloUpdate.encode, 0.05

    def mixing(self, model, work, messages, folded):
        row = row_of(self.schema, model).clone()
        for _, payload in messages:
            counted[0] += int(((exact[payload.data] - row).abs() >= theta).sum())
            seen[0] += len(row)
        mix(self, model, work, messages, folded)

    def encoding(self, model, *rest):
        payloads = encode(self, model, *rest)
        exact[payloads[0].data] = row_of(self.schema, model).clone()
        return payloads

    monkeypatch.setattr(ModuloUpdate, "mix", mixing)
    monkeypatch.setattr(ModuloUpdate, "encode", encoding)
    found = run(method=Moniqua(theta=theta, rounds=rounds), workers=1, neighbours=GRAPH, horizon=6.0)
    assert found["meters"]["wraps"] == {"wraps": counted[0], "wraps_share": counted[0] / seen[0]}
    assert found["final"]["wraps"] == counted[0] > 0


def test_a_distance_of_theta_is_a_wrap_in_either_direction_and_a_shorter_one_is_none():
    schema = Schema.of(torch.nn.Linear(2, 1))
    own, other = ([0.0, 0.0, 1.0], [0.5, -0.5, 1.49])
    copies = [{0: encode_row(torch.tensor(row), Dense(), schema)} for row in (own, other, own)]
    assert CountWraps(theta=0.5).run(None, 0, iter(copies)) == (2, None)


def test_other_methods_have_no_such_figures_but_may_be_asked():
    found = run(method=DPsgd(), **world(meters=MeterOptions(("wraps", "waiting"))))
    assert found["meters"]["wraps"] == {}
    assert "wraps" not in found["final"]
    assert "waiting_share" in run(meters=MeterOptions(("waiting",)), horizon=1.0)["final"]
