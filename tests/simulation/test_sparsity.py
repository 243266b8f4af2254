"""A sparsity schedule: how many numbers each message has, by the sender's own events; its bytes, to the byte."""

import numpy as np
import pytest
import torch

from pushcen.config import load_config
from pushcen.errors import OptionError
from pushcen.learning import Learner, SparsityOptions, TrainingOptions, Update, Work, sparse
from pushcen.methods import (
    AsyncDFedAvg,
    DivShare,
    Epidemic,
    PushCen,
    PushCenLean,
    PushSum,
    Rasgp,
    Sgp,
    Swift,
    SwiftRandom,
)
from pushcen.protocol import UNIT
from pushcen.runs.forecast import forecast
from pushcen.simulation import NeighbourOptions, NetworkOptions
from tests.simulation.worlds import run, task

SIZE = 6 * 8 + 8 + 8 * 2 + 2
SCHEDULE = SparsityOptions(first=0.7, last=0.02, over=5)


def bytes_after(events, first=0.7, last=0.02, over=5):
    """Header, numbers, and their places: a bit for each number of the model, or 4 bytes for each that is sent."""
    share = first + (last - first) * min(events, over) / over
    count = -(-SIZE * round(10_000 * share) // 10_000)
    return 56 + 4 * count + min(4 * count, -(-SIZE // 8))


def row_of(learner):
    return torch.cat([one.detach().flatten() for one in learner.model.parameters()]).numpy()


def test_each_message_has_the_numbers_farthest_from_the_start_and_what_others_left_out():
    learner = Learner(task(0, 1), sparse(Update(), SCHEDULE, "epidemic"), TrainingOptions(batch=16, lr=0.05))
    start, owed, sizes = row_of(learner).copy(), np.zeros(SIZE, np.float32), []
    for event in range(1, 9):
        payload = learner.step(Work(UNIT, [])).payloads[0]
        wanted = row_of(learner) - start + owed
        share = 0.7 + (0.02 - 0.7) * min(event, 5) / 5
        count = -(-SIZE * round(10_000 * share) // 10_000)
        chosen = sorted(range(SIZE), key=lambda at: (-abs(wanted[at]), at))[:count]
        sent = np.zeros(SIZE, np.float32)
        sent[chosen] = wanted[chosen]
        into = torch.zeros(SIZE)
        payload.codec.add(payload.schema, payload.body, 1, _Sum(into))
        np.testing.assert_allclose(into.numpy(), sent, atol=1e-6)
        owed = wanted - sent
        assert len(payload) == bytes_after(event) == SCHEDULE.message_bytes(payload.schema, event)
        sizes.append(len(payload))
    assert sizes[0] > sizes[1] > sizes[4] == sizes[7]


class _Sum:
    def __init__(self, row):
        self.row = row


@pytest.mark.parametrize(
    ("method", "receivers"),
    [
        (PushSum(receivers=3), 3),
        (AsyncDFedAvg(receivers=3), 3),
        (Epidemic(2), 2),
        (SwiftRandom(2), 2),
        (Sgp(receivers=3), 3),
    ],
)
@pytest.mark.parametrize("latency", [0.0, 0.3])
def test_every_byte_is_counted_by_the_events_of_who_sends_it(method, receivers, latency):
    summary = run(method=method, sparsity=SCHEDULE, network=NetworkOptions(latency=latency), horizon=5.0)
    assert summary["meters"]["mass"]["exact"]
    # clients have 3, 4 or 5 steps of 0.1 in an event, by their number
    events = [int(round(5.0 / pace, 9)) for pace in [0.1 * ((48 + 16 * (client % 3)) // 16) for client in range(8)]]
    expected = receivers * sum(bytes_after(event) for count in events for event in range(1, count + 1))
    assert summary["traffic"]["bytes_sent"] == expected
    assert summary["steps"] == sum(events)
    dense = run(method=method, network=NetworkOptions(latency=latency), horizon=5.0)
    assert dense["traffic"]["bytes_sent"] == receivers * sum(events) * (56 + 4 * SIZE)
    if not latency:
        assert summary["traffic"]["bytes_sent"] == summary["traffic"]["bytes_received"]


@pytest.mark.parametrize("method", [PushCen(), PushCenLean(), DivShare(), Rasgp(), PushSum(codec="centroids")])
def test_a_method_that_does_not_send_dense_models_is_refused(method):
    neighbours = NeighbourOptions(kind="graph" if method.needs_graph else "random")
    for option, sparsity in (("first", SparsityOptions(0.5)), ("last", SparsityOptions(1.0, 0.5))):
        with pytest.raises(OptionError, match=rf"sparsity\.{option} = 0\.5: {method.name} does not send whole dense"):
            run(method=method, neighbours=neighbours, sparsity=sparsity)


def test_an_update_of_ones_own_with_its_own_codecs_is_refused():
    class Own(Update):
        def codecs(self):
            return Update().codecs()

    with pytest.raises(OptionError, match="mine does not send whole dense models"):
        sparse(Own(), SCHEDULE, "mine")


def test_a_share_may_rise_too_and_stays_within_its_ends_whatever_is_rounded():
    for first, last in ((1.0, 0.0001), (0.0001, 1.0), (0.3, 0.1), (0.1, 0.1)):
        options = SparsityOptions(first, last, 7)
        shares = [options.share(event) for event in range(20)]
        assert (shares[0], shares[7], shares[19]) == (first, last, last)
        assert shares == sorted(shares, reverse=first > last)
    for option in ({"first": 0}, {"last": 1.1}, {"over": 0}, {"first": "all"}):
        with pytest.raises(OptionError, match=f"{next(iter(option))} = "):
            SparsityOptions(**option)


def test_a_config_and_a_forecast_know_it():
    config = load_config("digits", {"method": "epidemic", "sparsity.first": 0.1, "sparsity.last": 0.01})
    assert config.sparsity == SparsityOptions(0.1, 0.01)
    dense = forecast(load_config("digits", {"method": "epidemic"})).messages[0]
    assert forecast(config).messages[0] < 0.2 * dense
    three = {"compute.kind": "constant", "horizon": 3.0, "participation.delayed": 0.0, "sparsity.over": 2}
    found = forecast(load_config(config.plain(), three)).messages
    parameters = (dense - 56) // 4
    counts = [-(-parameters * share // 10_000) for share in (550, 100, 100)]  # after one event, two, three
    sizes = [56 + 4 * count + min(4 * count, -(-parameters // 8)) for count in counts]
    assert found == [round(sum(sizes) / 3)]
    assert "last" not in load_config("digits").plain()["sparsity"]
    assert load_config(config.plain()) == config


def test_swift_starts_from_the_common_start_all_the_same():
    graph = NeighbourOptions(kind="graph", degree=2)
    summary = run(method=Swift(), neighbours=graph, sparsity=SparsityOptions(0.2), horizon=4.0)
    assert summary["final"]["accuracy"] > 0.7
