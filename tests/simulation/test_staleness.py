"""Weights by age, a bound on it, and who works: recomputed from when each message was made, by a learner that tells."""

from collections import Counter
from fractions import Fraction
from random import Random

import numpy as np
import pytest
import torch

from pushcen.bench.plain import Trivial
from pushcen.errors import OptionError
from pushcen.learning import Outcome, Work
from pushcen.methods import AsyncDFedAvg, DivShare, Epidemic, PushCen, PushSum, Rasgp, Sgp, SwiftRandom
from pushcen.protocol import UNIT
from pushcen.simulation import (
    ComputeOptions,
    MeterOptions,
    NeighbourOptions,
    NetworkOptions,
    ParticipationOptions,
    StalenessOptions,
    simulate_world,
)
from pushcen.simulation.engine import Engine
from tests.methods.softmax import client_of, event, numbers
from tests.simulation.worlds import run, world


class Telling(Trivial):
    """Its messages say who made them at which event; it keeps all work that it got."""

    def __init__(self, client, seen):
        super().__init__(client)
        self.events, self.seen = 0, seen

    def step(self, work, *, encode=True, measure=False):
        self.events += 1
        self.seen.append((self.client, self.events, work))
        made = {0: (self.client, self.events)}
        return Outcome(made, loss=0.0, steps=10, samples=0, flops=0.0, density=1.0)

    def save(self, *, whole=True):
        return None

    def restore(self, state):
        pass


def works(**options):
    """Run a world in which the n-th event of every client ends at time n; return all that was merged."""
    seen = []
    simulate_world(
        world(workers=1, compute=ComputeOptions("constant"), meters=MeterOptions(()), **options),
        make=lambda client: Telling(client, seen),
    )
    return seen


@pytest.mark.parametrize("method", [SwiftRandom(receivers=1), AsyncDFedAvg(receivers=2, limit=0), Epidemic(2)])
def test_what_a_model_counts_halves_with_its_age_and_what_is_too_old_is_left_out(method):
    options = {"method": method, "horizon": 30.0, "network": NetworkOptions(latency=1.5, jitter=3.0)}
    bare, weighed = works(**options), works(**options, staleness=StalenessOptions(half_life=2.0, oldest=4.0))
    ages = Counter()
    for (client, now, before), (same, at, after) in zip(bare, weighed, strict=True):
        assert (client, now) == (same, at)
        expected = []
        for model, sender in zip(before.models, before.senders, strict=True):
            assert model.weight == UNIT
            age = now - model.payloads[0][1]
            ages[age] += 1
            if age <= 4:
                expected.append((model.payloads[0], sender, age))
        assert after.own == before.own == UNIT
        found = list(zip(after.models, after.senders, strict=True))
        assert [(model.payloads[0], sender) for model, sender in found] == [(made, who) for made, who, _ in expected]
        for (model, _), (_, _, age) in zip(found, expected, strict=True):
            assert abs(Fraction(model.weight, UNIT) - Fraction(2.0 ** (-age / 2))) < Fraction(1, 2**31)
    assert set(ages) >= {2, 3, 4}
    assert sum(ages[age] for age in ages if age > 4) > 5


def test_the_average_is_by_what_is_left_of_each_weight():
    method, draw = AsyncDFedAvg(limit=2, mass="keep"), Random(3)  # one of three is folded early
    staleness = StalenessOptions(half_life=1.5, oldest=6.0)
    one, others = client_of(0, method), [client_of(number, method) for number in (1, 2, 3)]
    made, now = {}, 0.0
    one.weigh = lambda weight, payloads: staleness.weigh(weight, now - made[id(payloads)])
    for _ in range(12):
        total, weights = numbers(one), 1.0
        for other in draw.sample(others, 3):
            [envelope] = event(other, [one]).values()
            made[id(envelope.payload)] = now - draw.choice([0.0, 1.5, 4.0, 7.0])
            age = now - made[id(envelope.payload)]
            factor = 2.0 ** (-age / 1.5) if age <= 6 else 0.0
            total, weights = total + factor * numbers(other), weights + factor
            one.receive(envelope)
        one.learner._merge(one.begin())
        np.testing.assert_allclose(numbers(one), total / weights, atol=1e-5)
        one.finish([], {})
        one.learner.step(Work(UNIT, []))
        now += 1.0


@pytest.mark.parametrize("method", [PushCen(), PushSum(), Sgp(), Rasgp()])
@pytest.mark.parametrize("option", [{"half_life": 2.0}, {"oldest": 2.0}])
def test_a_method_whose_weights_are_mass_or_whose_messages_are_no_models_is_refused(method, option):
    neighbours = NeighbourOptions(kind="graph" if method.needs_graph else "random")
    with pytest.raises(OptionError, match=rf"^staleness\.{next(iter(option))} = 2\.0: {method.name} |: messages of"):
        run(method=method, neighbours=neighbours, staleness=StalenessOptions(**option))


def test_options_that_make_no_sense_are_refused():
    for option in ({"half_life": -1.0}, {"oldest": float("nan")}, {"ahead": 1.5}, {"ahead": True}):
        with pytest.raises(OptionError, match=f"{next(iter(option))} = "):
            StalenessOptions(**option)


@pytest.fixture
def trained(monkeypatch):
    """Who has had a compute event when, in order."""
    seen, train = [], Engine.train

    def noted(engine, node):
        seen.append((engine.now, node.name))
        train(engine, node)

    monkeypatch.setattr(Engine, "train", noted)
    return seen


UNEVEN = {
    "compute": ComputeOptions(kind="classes", classes=(1.0, 3.0, 7.0)),
    "horizon": 30.0,
    "meters": MeterOptions(()),
}


def bounded(ahead, **options):
    made = world(workers=1, staleness=StalenessOptions(ahead=ahead), **{**UNEVEN, **options})
    return simulate_world(made, make=lambda client: Telling(client, []))


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_nobody_begins_an_event_so_far_ahead_of_the_slowest_and_the_slowest_never_waits(trained, ahead):
    bounded(0)
    free, trained[:] = Counter(name for _, name in trained), []
    summary = bounded(ahead)
    done, most = Counter(dict.fromkeys(map(str, range(8)), 0)), 0
    for _, name in trained:
        done[name] += 1
        most = max(most, max(done.values()) - min(done.values()))
    assert most == ahead  # an event that was begun within the bound ends at it
    slowest = min(free, key=free.get)
    assert done[slowest] == free[slowest]
    assert max(done.values()) < max(free.values())
    assert summary["steps"] == sum(done.values())


def test_who_comes_late_goes_or_crashes_stops_nobody(trained):
    comes_and_goes = ParticipationOptions(
        delayed=0.25, earliest=8, latest=20, churn=0.5, stay=4, away=4, crashes=0.25, between=6
    )
    for how in ({}, {"kind": "graph", "graph": "ring"}, {"kind": "view", "size": 4}):
        trained.clear()
        network = NetworkOptions(latency=0.5, loss=0.2)
        bounded(2, participation=comes_and_goes, neighbours=NeighbourOptions(**how), network=network)
        for begin in range(0, 28, 4):  # there is always somebody who works
            assert any(begin <= now < begin + 4 * 1.8 for now, _ in trained), begin
        assert {name for _, name in trained} == set(map(str, range(8)))


@pytest.mark.filterwarnings("ignore:graph")
def test_on_a_graph_only_those_within_reach_count(tmp_path, trained, monkeypatch):
    edges = tmp_path / "pairs.txt"  # two pairs that know nothing of each other
    edges.write_text("0 1\n1 0\n2 3\n3 2\n")
    start, paces = Engine.start, {"0": 1.0, "1": 4.0, "2": 1.0, "3": 2.0}

    def slowly(engine, node):
        node.pace = paces[node.name]
        start(engine, node)

    monkeypatch.setattr(Engine, "start", slowly)
    bounded(1, clients=4, horizon=12.0, neighbours=NeighbourOptions(kind="graph", graph=str(edges)))
    times = {name: [now for now, who in trained if who == name] for name in paces}
    assert times["0"] == [1, 5, 9]  # client 1 is done at 4, 8 and 12
    assert times["2"] == [1, 3, 5, 7, 9, 11]


def test_fragments_are_weighed_by_age_coordinate_by_coordinate():
    options = {"method": DivShare(parts=2, receivers=1), "horizon": 4.0, "network": NetworkOptions(latency=0.4)}
    one, other = (run(**options, staleness=staleness) for staleness in (StalenessOptions(), StalenessOptions(1.0)))
    assert one["final"]["accuracy"] is not None
    assert one["final"]["loss"] != other["final"]["loss"]
    assert torch.isfinite(torch.tensor(other["final"]["loss"]))
