"""A client whose training diverges: the others go on, the books do not change, and it is told who and why."""

import json
import math

import pytest
import torch

from pushcen.analysis import comparison, group
from pushcen.errors import DivergenceError, TaskError
from pushcen.learning import Learner, Model, Task, TrainingOptions, Work
from pushcen.methods import AsyncDFedAvg, DivShare, Independent, PushCen
from pushcen.runs import Run
from pushcen.simulation import CheckpointOptions, ExecutorOptions
from tests.simulation.test_determinism import EVERYTHING, Stops, files
from tests.simulation.worlds import norm_task, run, task


def breaking(events, client=5):
    """One client's loss is not finite in the last step of these of its events."""

    def make(index, clients):
        made = norm_task(index, clients)
        if index != client:
            return made
        steps = max(1, len(made.train[0]) // 16)
        plain, calls = made.loss, []

        def loss(outputs, targets):
            if not torch.is_grad_enabled():
                return plain(outputs, targets)
            calls.append(1)
            event, step = divmod(len(calls) - 1, steps)
            return plain(outputs, targets) * (math.nan if event in events and step == steps - 1 else 1)

        made.loss = loss
        return made

    return make


def bad_data(index, clients):
    """Client 5 has broken measurements, for training and for testing; it knows nothing but how often it was called."""
    made = norm_task(index, clients)
    if index == 5:
        made.train[0][::7] = math.nan
        made.test[0][3] = math.nan
    return made


@pytest.mark.parametrize("method", [PushCen(clusters=4), AsyncDFedAvg(), DivShare(parts=3), Independent()])
def test_the_others_go_on_and_it_is_told_who_and_why(method):
    summary = run(function=bad_data, method=method)
    assert summary["status"] == "finished"
    assert summary["meters"]["mass"]["exact"]
    assert summary["final"]["accuracy"] > 0.7
    [(name, client)] = summary["failures"]["clients"].items()
    assert (name, client["events"], client["trains"]) == ("5", 5, False)
    assert client["why"].startswith("client 5, event 1, step 1: the loss is nan")
    assert summary["failures"]["events"] == summary["final"]["failed_events"] == 5
    assert summary["final"]["given_up"] == 1
    assert math.isfinite(summary["final"]["train_loss"])


def test_the_books_are_those_of_a_run_in_which_nothing_failed():
    broken, whole = run(function=bad_data), run(function=norm_task)
    for name in ("steps", "events", "traffic", "message_bytes"):
        assert broken[name] == whole[name]
    for name in ("mass_held", "mass_waiting", "mass_under_way", "mass_destroyed"):
        assert broken["meters"]["mass"][name] == whole["meters"]["mass"][name]
    assert whole["failures"] == {"events": 0, "clients": {}}


def test_any_number_of_workers_gives_the_same_bytes(tmp_path):
    options = {
        **EVERYTHING,
        "horizon": 4.0,
        "function": bad_data,
        "training": TrainingOptions(batch=16, give_up_after=2),
    }
    found = [run(tmp_path / str(n), workers=n, **options) and files(tmp_path / str(n)) for n in (1, 4)]
    assert found[0] == found[1]
    assert found[0][0]["failures"]["clients"]["5"]["trains"] is False


@pytest.mark.parametrize("rows", [1, 3])
def test_an_interrupted_run_ends_in_the_same_bytes(tmp_path, rows):
    """Interrupted between two failures in a row, and after it has given up: what counts them is saved."""
    options = {
        **EVERYTHING,
        "horizon": 5.0,
        "function": bad_data,
        "training": TrainingOptions(batch=16, give_up_after=3),
    }
    run(tmp_path / "whole", **options)
    assert run(tmp_path / "parts", observer=Stops(rows), **options)["status"] == "interrupted"
    run(tmp_path / "parts", resume=True, **options)
    assert files(tmp_path / "parts") == files(tmp_path / "whole")
    assert files(tmp_path / "whole")[0]["failures"]["events"] == 3


def test_checkpoints_change_nothing(tmp_path):
    options = {"function": bad_data, "horizon": 3.0}
    often = run(tmp_path / "often", checkpoint=CheckpointOptions(seconds=0.0), **options)
    assert often["failures"] == run(**options)["failures"]
    assert often["final"] == run(**options)["final"]


def test_failures_that_are_not_in_a_row_do_not_add_up():
    summary = run(function=breaking({1, 2, 4, 6}), training=TrainingOptions(batch=16, lr=1e-2, give_up_after=3))
    assert summary["failures"]["clients"]["5"] == {
        "events": 4,
        "trains": True,
        "why": "client 5, event 2, step 5: the loss is nan; a smaller training.lr may help",
    }


def test_zero_never_gives_up():
    summary = run(function=bad_data, training=TrainingOptions(batch=16, give_up_after=0))
    client = summary["failures"]["clients"]["5"]
    assert client["trains"]
    assert client["events"] > 5


def test_strict_ends_the_run_and_without_it_the_same_folder_goes_on(tmp_path):
    for workers in (1, 4):
        folder = tmp_path / str(workers)
        with pytest.raises(DivergenceError, match="client 5, event 1, step 1: the loss is nan"):
            run(folder, bad_data, workers=workers, strict=True)
        status = json.loads((folder / "status.json").read_text())
        assert (status["status"], "client 5" in status["error"]) == ("failed", True)
        assert not (folder / "summary.json").exists()
        assert run(folder, bad_data, workers=workers, resume=True)["status"] == "finished"


def test_the_closing_table_says_it(tmp_path):
    run(tmp_path, bad_data)
    (tmp_path / "config.toml").write_text('[method]\nname = "pushcen"\n')
    [_, note] = comparison(group([Run.open(tmp_path)])).notes
    assert (
        "events that failed: 5 of client 5, which no longer trains (client 5, event 1, step 1: the loss is nan" in note
    )


def test_an_accuracy_that_is_not_finite_is_not_counted_and_that_is_told(tmp_path):
    def make(index, clients):
        made = task(index, clients)
        made.metric = lambda outputs, targets: outputs[:, 0] * (math.nan if index == 5 else 1)
        return made

    summary = run(tmp_path, make, horizon=1.0)
    assert summary["final"]["accuracy"] is not None
    assert summary["final"]["accuracy_left_out"] == 1
    (tmp_path / "config.toml").write_text('[method]\nname = "pushcen"\n')
    [_, note] = comparison(group([Run.open(tmp_path)])).notes
    assert note == "PushCen: clients not counted, since their accuracy is not finite: 1"
    assert "accuracy_left_out" not in run(function=task, horizon=1.0)["final"]


def test_a_mistake_in_the_task_still_ends_the_run():
    def make(index, clients):
        made = task(index, clients)
        if index == 5:
            made.loss = lambda outputs, targets: {}["logits"]
        return made

    with pytest.raises(TaskError, match=r"client 5, event 1, step 1: KeyError: 'logits' .test_failures.py, line"):
        run(function=make)


@pytest.mark.slow
def test_on_a_cluster_too(tmp_path):
    pytest.importorskip("ray")
    options = {"horizon": 2.0, "function": bad_data}
    run(tmp_path / "threads", **options)
    run(tmp_path / "ray", executor=ExecutorOptions("ray", workers=2), **options)
    assert files(tmp_path / "threads") == files(tmp_path / "ray")


def learner_of(index, clients=8, make=norm_task, method=PushCen(clusters=4), batch=16, **options):  # noqa: B008
    training = TrainingOptions(batch=batch, lr=1e-2, **options)
    return Learner(make(index, clients), method.update(), training, client=f"client {index}", seed=index)


def same(one, other):
    one, other = (state.tensors for state in (one, other))
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("step", [0, 2])
def test_the_learner_is_as_before_the_event_and_sends_that(step):
    """BatchNorm's statistics, the optimiser's memory, the dictionary and what rounding took off, too."""
    learner, other = learner_of(5), learner_of(1)
    learner.attempt(Work(3, [Model(1, 0, other.encode())]))
    before, calls, plain = learner.save(), [], learner.task.loss
    sent = learner.update.encode(learner.model)
    learner.restore(before)

    def loss(outputs, targets):
        calls.append(1)
        return plain(outputs, targets) * (math.nan if len(calls) > step else 1)

    learner.task.loss = loss
    learner.fold(2, 0, other.encode())
    learner.take()
    outcome = learner.attempt(Work(3, [Model(1, 0, other.attempt(Work(1, [])).payloads)]), encode=False)
    assert outcome.failure.startswith(f"client 5, event 2, step {step + 1}: the loss is nan")
    assert same(learner.save(), before)
    assert learner.encode()[0].data == sent[0].data
    assert (learner.events, learner.failures, learner.folded) == (2, 1, [])
    learner.task.loss = plain
    assert learner.attempt(Work(1, [])).trains
    assert learner.failures == 0


class Watched(torch.nn.Linear):
    """Two names for one buffer, changed in place; one that is replaced; and one that is there only after a call."""

    def __init__(self):
        super().__init__(4, 2)
        self.register_buffer("seen", torch.zeros(()))
        self.again = torch.nn.Identity()
        self.again.register_buffer("seen", self.seen)
        self.register_buffer("last", torch.zeros(2))
        self.register_buffer("first", None)

    def forward(self, x):
        self.seen += 1
        self.last = x.mean(0)[:2].detach()
        self.first = self.last if self.first is None else self.first
        return super().forward(x) * torch.nan


def test_buffers_are_the_same_objects_with_the_same_values():
    model = Watched()
    task = Task(model, (torch.randn(8, 4), torch.zeros(8).long()), share=lambda name: "weight" in name)
    assert Learner(task).attempt(Work(1, [])).failure
    assert model.again.seen is model.seen
    assert (model.seen, model.last.tolist(), model.first) == (0, [0, 0], None)


def test_weights_that_the_last_step_spoils_and_errors_they_cause_are_failures_too():
    spoilt = learner_of(5, batch=1000)
    spoilt._optimiser.step = lambda: spoilt.model[2].weight.data.fill_(math.inf)
    before = spoilt.model[2].weight.clone()
    outcome = spoilt.attempt(Work(1, []))
    assert "client 5, event 1: 2.weight has a value that is not finite" in outcome.failure
    assert torch.equal(spoilt.model[2].weight, before)

    picky = learner_of(5)
    picky._optimiser.step = lambda: picky.model[2].weight.data.fill_(math.nan)
    plain = picky.task.loss

    def loss(outputs, targets):
        if outputs.isnan().any():
            raise ValueError("probabilities must be between 0 and 1")
        return plain(outputs, targets)

    picky.task.loss = loss
    outcome = picky.attempt(Work(1, []))
    assert "step 2: ValueError: probabilities must be between 0 and 1" in outcome.failure
    assert "weights are not finite" in outcome.failure


def test_data_that_the_users_code_refuses_for_its_nan_is_a_failure_too():
    learner = learner_of(5, make=bad_data)
    plain = learner.task.loss

    def loss(outputs, targets):
        torch.distributions.Categorical(logits=outputs)  # refuses NaN
        return plain(outputs, targets)

    learner.task.loss = loss
    outcome = learner.attempt(Work(1, []))
    assert "step 1: ValueError: Expected parameter logits" in outcome.failure
    assert "the batch has NaN" in outcome.failure


class SpoiltGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * math.nan


class Homely(torch.nn.Module):
    """The gradient of what stays at home is not a number; the loss is, until that has been used."""

    def __init__(self):
        super().__init__()
        self.shift, self.out = torch.nn.Parameter(torch.zeros(4)), torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.out(x + SpoiltGradient.apply(self.shift))


@pytest.mark.parametrize(("share", "encode"), [(lambda name: name != "shift", True), (None, False)])
def test_weights_that_nobody_looks_at_are_looked_at_after_the_last_step(share, encode):
    """At the next event it is too late: there would be nothing sound to go back to."""
    task = Task(Homely(), (torch.randn(8, 4), torch.zeros(8).long()), share=share)
    learner = Learner(task, client="client 5")
    outcome = learner.attempt(Work(1, []), encode=encode)
    assert outcome.failure == "client 5, event 1: weights are not finite after its last step"
    assert not learner.model.shift.any()


def test_who_has_given_up_still_passes_on_what_it_merges():
    learner, other = learner_of(5, make=bad_data, give_up_after=1), learner_of(1, give_up_after=1)
    sent = other.attempt(Work(1, [])).payloads
    assert not learner.attempt(Work(1, [Model(1, 0, sent)])).trains
    outcome = learner.attempt(Work(0, [Model(1, 0, sent)], adopts=True))
    assert (outcome.steps, outcome.failure, outcome.trains) == (0, "", False)
    mine, theirs = (one.schema.tensors(one.model)[0] for one in (learner, other))
    assert (mine - theirs).norm() < 0.5 * theirs.norm()  # theirs, but for rounding to four values
    again = learner_of(5, make=bad_data, give_up_after=1)
    again.restore(learner.save())
    assert not again.trains
