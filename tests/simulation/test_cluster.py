"""What an actor of a Ray cluster keeps decoded: whatever its task needs, and not much more."""

import pytest
import torch

from pushcen.codec import encode
from pushcen.learning import OFFER, OFFERED
from pushcen.methods import PushCenLean
from pushcen.simulation.executors import MakeLearner
from pushcen.simulation.jobs import Build, Encode, Fold
from tests.simulation.worlds import task, world

cluster = pytest.importorskip("pushcen.simulation.executors.cluster")


def offered(seed):
    draw = torch.Generator().manual_seed(seed)
    model = task(0, 2).model
    with torch.no_grad():
        for tensor in model.parameters():
            tensor.copy_(torch.randn(tensor.shape, generator=draw))
    return {OFFER: encode(model, OFFERED).data}


def worker():
    made = world(method=PushCenLean(bits=4.0), clients=2)
    found = cluster.Worker(
        [], cluster.ray.cloudpickle.dumps((MakeLearner(task, made.method, made.training, 2, 0), None)), False
    )
    for client in range(2):
        found.run(client, [Build()], 0)
    return found


def message(sender, base):
    """A message of client 0 that is the difference to a reference, which is the nearest by far."""
    learner = sender._host.learners[0]
    reference = cluster.read_reference(cluster.Payload.parse(base[OFFER], learner.schema))
    with torch.no_grad():
        for (entry, place), tensor in zip(learner.schema.slices, learner.schema.tensors(learner.model), strict=True):
            tensor.copy_(reference.row[place].view(entry.shape))
    return sender.run(0, [Encode(1)], 1, base)[1]


@pytest.mark.parametrize("many", [2, cluster.REFERENCES + 1])
def test_an_old_reference_stays_for_the_task_that_needs_it_beside_new_ones(many):
    """A client that was away merges what came long ago together with what comes now."""
    one, bases = worker(), [offered(seed) for seed in range(cluster.REFERENCES + many - 1)]
    one._hold([base[OFFER] for base in bases[: cluster.REFERENCES]], 0)
    needed = [bases[0], *bases[1 - many :]]
    messages = [message(one, base) for base in needed]
    jobs = [Fold(1, 0)] * many
    one.run(1, jobs, many, *messages, *needed)
    assert one._host.learners[1].folded[0].weight == many
    one.run(1, [Fold(1, 0)], 1, messages[0], needed[0])
    assert len(one._references) == len(one._fingerprints) == cluster.REFERENCES
