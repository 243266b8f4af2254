"""What users bring in other forms than asked for: taken where it is easy, else refused by name, in one line."""

import collections
import json
import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.utils.data import IterableDataset
from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.errors import OptionError, PushcenError, TaskError
from pushcen.learning import CentroidUpdate, Learner, State, Task, TrainingOptions, Work, build_task
from tests.learning.tasks import tiny_data, tiny_model
from tests.learning.test_task import Rows

X, Y = tiny_data()
BATCHES = TrainingOptions(epochs=2, batch=8, lr=0.01)
Pair = collections.namedtuple("Pair", "inputs targets")


def learner_of(train=(X, Y), model=None, training=BATCHES, **task):
    return Learner(Task(model or tiny_model(), train, **task), CentroidUpdate(8), training, client="client 7", seed=3)


SAME = {
    "arrays": (X.numpy(), Y.numpy()),
    "a list": [X, Y],
    "a list of arrays": [X.numpy(), Y.numpy()],
    "float64": (X.double(), Y),
    "arrays of float64": (X.double().numpy(), Y.numpy()),
    "arrays of other byte order": (X.numpy().astype(">f4"), Y.numpy().astype(">i8")),
    "a dataset of float64": Rows(X.double().numpy(), Y),
    "a dataset of lists of floats": Rows(X, Y, lambda x: torch.tensor(x.tolist(), dtype=torch.float64)),
    "a named tuple": Pair(X, Y),
    "samples that are named tuples": [Pair(x, y) for x, y in zip(X, Y, strict=True)],
    "arrays that run backwards": (X.flip(0).numpy()[::-1], Y.flip(0).numpy()[::-1]),
    "samples that are lists": [[x, y] for x, y in zip(X, Y, strict=True)],
}


@pytest.mark.parametrize("form", SAME)
def test_other_forms_of_the_same_samples_are_the_same(form):
    expected, learner = learner_of(test=(X, Y)), learner_of(SAME[form], test=SAME[form])
    assert learner.step(Work(1, [])).payloads[0].data == expected.step(Work(1, [])).payloads[0].data
    assert learner.evaluate() == expected.evaluate()


def test_float64_stays_with_a_model_of_float64_and_targets_follow_too():
    seen = []

    def loss(outputs, targets):
        seen.append(targets.dtype)
        return nn.functional.binary_cross_entropy_with_logits(outputs[:, 0], targets)

    for model, number in ((tiny_model(), torch.float32), (tiny_model().double(), torch.float64)):
        learner_of((X.double(), Y.double()), model, loss=loss).step(Work(1, []))
        assert set(seen) == {number}
        seen.clear()


class Stream(IterableDataset):
    def __iter__(self):
        return iter([(X[0], Y[0])])


REFUSED = {
    "an IterableDataset": (Stream(), "is a Stream: must be two tensors"),
    "a tensor": (X, "is a Tensor: must be two tensors"),
    "an array": (X.numpy(), "is a ndarray: must be two tensors"),
    "a dict": ({"x": X, "y": Y}, "is a dict: must be two tensors"),
    "a generator": ((one for one in [(X, Y)]), "is a generator: must be two tensors"),
    "nothing": (None, "is a NoneType: must be two tensors"),
    "numbers": ((1, 2), r"is \(int, int\): must be two tensors"),
    "lists": ((X.tolist(), Y.tolist()), r"is \(\(\(float, .{,300}: must be two tensors"),
    "wide numbers": ((X.numpy().astype(np.longdouble), Y), "has an array .* must be numbers, of float64 at most"),
    "texts": ((np.array(["a", "b"]), Y[:2]), r"has an array \[2\] of <U1: must be numbers"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_what_holds_no_samples_is_refused_at_once(form):
    samples, text = REFUSED[form]
    with pytest.raises(TaskError, match=f"the training data of client 7 {text}"):
        learner_of(samples)


def test_arrays_that_may_only_be_read_are_taken_without_a_word(recwarn):
    inputs = X.numpy().copy()
    inputs.flags.writeable = False
    learner_of((inputs, Y)).step(Work(1, []))
    assert not recwarn.list


UNUSABLE = {
    "a class for a model": ({"model": nn.Linear}, "the task's model is <class .*Linear'>: must be a torch.nn.Module"),
    "no model": ({"model": lambda x: x}, "the task's model is <function .*: must be a torch.nn.Module"),
    "no values": ({"model": nn.Linear(3, 2, device="meta")}, "weight of the model is on the meta device"),
    "no loss": ({"loss": None}, "the task's loss is None: must be a function"),
    "a filter of names": ({"share": ["weight"]}, r"the task's share is \['weight'\]: must be a function"),
    "nothing shared": ({"share": lambda name: False}, "nothing of this model is shared"),
    "no shapes": ({"model": nn.LazyLinear(2)}, "weight has no shape yet"),
}


@pytest.mark.parametrize("form", UNUSABLE)
def test_what_is_no_model_and_no_function_is_refused_with_the_clients_name(form):
    given, text = UNUSABLE[form]
    with pytest.raises(PushcenError, match=f"client 7: {text}"):
        Learner(Task(**({"model": tiny_model(), "train": (X, Y)} | given)), client="client 7")


BATCHLESS = {
    "many lengths": (
        [(torch.zeros(3 + i % 2), 0) for i in range(8)],
        r"\(\[3\] float32, int\) and \(\[4\] float32, int\)",
    ),
    "no target": ([torch.zeros(3) for _ in range(8)], r"such as \[3\] float32: must be pairs"),
    "three parts": ([(torch.zeros(3), 0, 0) for _ in range(8)], r"such as \(\[3\] float32, int, int\): must be pairs"),
    "dicts": ([{"x": torch.zeros(3), "y": 0} for _ in range(8)], r"such as {x: \[3\] float32, y: int}: must be pairs"),
    "objects": ([(object(), 0) for _ in range(8)], r"such as \(object, int\)"),
}


@pytest.mark.parametrize("form", BATCHLESS)
def test_samples_that_make_no_batch_are_refused_by_their_form(form):
    samples, text = BATCHLESS[form]
    with pytest.raises(TaskError, match=rf"the training data of client 7 has samples .*{text}"):
        learner_of(samples).step(Work(1, []))


LOSSES = {
    "a vector": (lambda o, y: nn.functional.cross_entropy(o, y, reduction="none"), r"a tensor \[8\] float32"),
    "a float": (lambda o, y: 0.5, "0.5, <class 'float'>"),
    "nothing": (lambda o, y: None, "None, <class 'NoneType'>"),
}


@pytest.mark.parametrize("form", LOSSES)
def test_a_loss_that_is_not_one_number_is_refused(form):
    loss, text = LOSSES[form]
    with pytest.raises(TaskError, match=rf"client 7: the loss gave {text}: must be one number, the mean"):
        learner_of(loss=loss).step(Work(1, []))


def test_errors_in_the_users_code_say_where_and_what_may_help():
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 4))
    with pytest.raises(TaskError, match=r"client 7, event 1, step 1: ValueError: Expected more than .*two samples"):
        learner_of((X[:1], Y[:1]), model).step(Work(1, []))
    with pytest.raises(TaskError, match=r"client 7, event 1, step 1: RuntimeError: .*the loss must depend"):
        learner_of(loss=lambda o, y: nn.functional.cross_entropy(o.detach(), y)).step(Work(1, []))
    with pytest.raises(TaskError, match=r"client 7, evaluation: ZeroDivisionError: .*\(test_mistakes.py, line \d+\)"):
        learner_of(test=(X, Y), metric=lambda o, y: 1 / 0).evaluate()
    with pytest.raises(TaskError, match=r"the task function failed for client 3: KeyError: 'age' \(test_mistakes.py"):
        build_task(lambda client, clients: {}["age"], 3, 5)


def test_a_device_that_is_not_there_is_refused_by_its_key():
    with pytest.raises(OptionError, match=r"training.device = 'cuda:77': is not there .*cpu would do"):
        learner_of(training=TrainingOptions(device="cuda:77"))
    with pytest.raises(OptionError, match=r"device = 'meta': must be cpu"):
        TrainingOptions(device="meta")


class Waves(nn.Module):
    """Complex numbers that stay at home, beside some that travel; and a state that is no tensor."""

    def __init__(self, extra=None):
        super().__init__()
        self.waves = nn.Parameter(torch.ones(6, dtype=torch.complex64))
        self.out = nn.Linear(6, 4)
        self.extra = extra

    def forward(self, x):
        return self.out((x * self.waves).real)

    def get_extra_state(self):
        return self.extra

    def set_extra_state(self, state):
        self.extra = state


@pytest.mark.parametrize("training", [BATCHES, TrainingOptions(batch=8, optimiser="sgd", lr=0.1, momentum=0.9)])
@pytest.mark.parametrize(
    "extra", [None, {"seen": [1, 2.5], "name": "a"}, torch.arange(3)], ids=["none", "plain", "tensor"]
)
def test_complex_numbers_at_home_and_extra_states_are_trained_and_saved(tmp_path, training, extra):
    learner, again = (learner_of(model=Waves(), training=training, share=lambda n: n != "waves") for _ in range(2))
    learner.model.extra = extra
    learner.step(Work(1, []))
    assert (learner.model.waves != 1).all()
    tensors, plain = learner.save()
    save_file(tensors, tmp_path / "state.safetensors")
    again.restore(State(load_file(tmp_path / "state.safetensors"), json.loads(json.dumps(plain))))
    found = again.model.extra
    assert torch.equal(found, extra) if isinstance(extra, torch.Tensor) else found == extra
    for one in (learner, again):
        one.step(Work(1, []))
    assert torch.equal(learner.model.waves, again.model.waves)


def test_an_extra_state_comes_back_when_an_event_diverges():
    learner = learner_of(model=Waves({"seen": [1]}), share=lambda n: n != "waves")

    def loss(outputs, targets):
        learner.model.extra["seen"].append(2)
        return outputs.sum() * math.nan

    learner.task.loss = loss
    assert learner.attempt(Work(1, [])).failure
    assert learner.model.extra == {"seen": [1]}


def test_an_extra_state_that_cannot_be_saved_is_refused_before_anything_is_trained():
    with pytest.raises(TaskError, match=r"client 7: _extra_state is {1, 2}: what get_extra_state gives must be"):
        learner_of(model=Waves({1, 2}), share=lambda n: n != "waves")


TASK = """
import torch
from pushcen.learning import Task

def vector(client, clients):
    inputs, targets = torch.randn(20, 4), torch.randint(2, (20,))
    loss = torch.nn.CrossEntropyLoss(reduction="none")
    return Task(torch.nn.Linear(4, 2), (inputs, targets), loss=loss)
"""


def test_the_command_line_shows_one_line_and_all_of_it_if_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])
    (tmp_path / "mistaken_for_a_test.py").write_text(TASK)
    command = ["simulate", "--task", "mistaken_for_a_test:vector", "--clients", "2", "--workers", "1"]
    shown = {}
    for at, flags in enumerate([[*command], ["--traceback", *command], [*command, "--traceback"]]):
        result = CliRunner().invoke(app, [*flags, "--name", str(at)])
        assert result.exit_code == 2
        shown[at] = result.output
        assert "error: client 0: the loss gave a tensor [20] float32: must be one number" in " ".join(
            result.output.split()
        )
    assert "Traceback" not in shown[0]
    assert "Traceback" in shown[1]
    assert "Traceback" in shown[2]
