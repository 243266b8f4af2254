"""The benchmark of adapters, on a small transformer: that it runs, and what does not depend on the machine."""

from pushcen.bench import lora
from pushcen.learning import CentroidUpdate, Learner, Task


def test_a_push_of_adapters_is_at_most_0_17_of_what_trains():
    learner = lora._learner(CentroidUpdate(clusters=32))
    assert learner.schema.entries[0].shape == (lora.RANK, lora.HIDDEN) == (8, 512)
    assert learner.sizes()[0] <= 0.17 * sum(parameter.nbytes for parameter in learner.frozen.trained)


def test_an_event_is_timed_beside_plain_training(monkeypatch):
    def learner(update):
        made = lora._task(0, 1, samples=32, hidden=16, layers=1)
        return Learner(Task(made.model, made.train), update)

    monkeypatch.setattr(lora, "_learner", learner)
    monkeypatch.setattr(lora, "PAIRS", 1)
    monkeypatch.setattr(lora, "TURNS", 1)
    assert lora.overhead() > 0
