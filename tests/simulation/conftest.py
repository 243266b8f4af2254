"""Engines that tests drive by hand."""

import pytest

from pushcen.bench.plain import Trivial
from pushcen.learning import TrainingOptions
from pushcen.methods import PushSum
from pushcen.simulation import MeterOptions
from pushcen.simulation.engine import Engine
from pushcen.simulation.executors import Host
from pushcen.simulation.executors.threads import Threads
from pushcen.simulation.jobs import Build, Encode
from tests.simulation.worlds import world


class Varied(Trivial):
    """Learners that do nothing, some faster than others."""

    @property
    def steps(self):
        return 3 + self.client % 3

    def restore(self, state):
        pass

    def save(self, *, whole=True):
        pass


@pytest.fixture
def world_of():
    """Engines that a test drives by hand, with learners that do nothing."""
    made = []

    def make(**options):
        made.append(_engine(**options))
        return made[-1]

    yield make
    for engine in made:
        engine.executor.close()


def _engine(**options):
    options.setdefault("method", PushSum(receivers=3, limit=4))
    made = world(**options, meters=MeterOptions(()), training=TrainingOptions())
    runs = Threads(Host(Varied), 1)
    facts = [runs.wait(runs.submit(client, [Build()])) for client in range(made.clients)]
    engine = Engine(made, runs, facts, runs.submit(0, [Encode()]))
    engine.plan()
    return engine
