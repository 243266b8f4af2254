"""A run that is over leaves nothing behind: what it held is freed at once, not when Python next looks for cycles."""

import gc
import weakref

import pytest

from pushcen.codec import Payload
from pushcen.methods import method_named
from pushcen.simulation import EvaluationOptions
from pushcen.simulation.executors import MakeLearner
from tests.simulation.test_determinism import EVERYTHING
from tests.simulation.worlds import run


@pytest.fixture
def made(monkeypatch):
    """All learners and messages that are made, while Python does not look for cycles."""
    found, make, check = [], MakeLearner.__call__, Payload.__init__

    def making(self, client):
        learner = make(self, client)
        found.append(weakref.ref(learner))
        return learner

    def sending(self, *given):
        check(self, *given)
        found.append(weakref.ref(self))

    monkeypatch.setattr(MakeLearner, "__call__", making)
    monkeypatch.setattr(Payload, "__init__", sending)
    gc.disable()
    yield found
    gc.enable()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("method", ["pushcen", "async-dfedavg", "pushcen-lean", "divshare"])
def test_learners_and_messages_are_gone_when_a_run_is_over(made, method, workers):
    evaluation = EvaluationOptions(every=1.0, reference=True)
    run(method=method_named(method)(), workers=workers, horizon=2.0, evaluation=evaluation)
    assert len(made) > 20
    assert not [one() for one in made if one() is not None]


def test_so_they_are_in_a_world_of_late_and_lost_messages_and_clients_that_come_and_go(made, tmp_path):
    run(tmp_path, **{**EVERYTHING, "horizon": 3.0})
    assert not [one() for one in made if one() is not None]
