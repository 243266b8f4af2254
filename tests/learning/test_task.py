"""What a user brings: samples of any kind, any model; and what is refused, by name."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, TensorDataset

from pushcen.codec import Schema, decode
from pushcen.errors import LearningError, OptionError, PayloadError, TaskError
from pushcen.learning import CentroidUpdate, Learner, Model, Task, TrainingOptions, Work, build_task, load_task
from pushcen.protocol import UNIT
from tests.learning.tasks import tiny_data, tiny_learner, tiny_model

BATCHES = TrainingOptions(epochs=2, batch=8, lr=0.01)


class Rows(Dataset):
    """A map-style dataset, one sample at a time."""

    def __init__(self, inputs, targets, form=lambda x: x):
        self.inputs, self.targets, self.form = inputs, targets, form

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        return self.form(self.inputs[i]), int(self.targets[i])


class TwoInputs(nn.Module):
    """The tiny model, fed in two halves."""

    def __init__(self):
        super().__init__()
        self.whole = tiny_model()

    def forward(self, left, right):
        return self.whole(torch.cat([left, right], dim=-1))


def halves(x):
    return x[..., :2], x[..., 2:]


def named_halves(x):
    return {"right": x[..., 2:], "left": x[..., :2]}


X, Y = tiny_data()
FORMS = {
    "tensors": (tiny_model, (X, Y)),
    "a TensorDataset": (tiny_model, TensorDataset(X, Y)),
    "a map-style dataset": (tiny_model, Rows(X, Y)),
    "a list of samples": (tiny_model, [(x, int(y)) for x, y in zip(X, Y, strict=True)]),
    "a tuple of tensors": (TwoInputs, (halves(X), Y)),
    "a dict of tensors": (TwoInputs, (named_halves(X), Y)),
    "a TensorDataset of three": (TwoInputs, TensorDataset(*halves(X), Y)),
    "samples with tuples": (TwoInputs, Rows(X, Y, halves)),
    "samples with dicts": (TwoInputs, Rows(X, Y, named_halves)),
}


@pytest.mark.parametrize("form", FORMS)
def test_samples_of_any_form_train_and_score_as_tensors_do(form):
    model, samples = FORMS[form]
    expected = Learner(Task(tiny_model(), (X, Y), (X, Y)), None, BATCHES, seed=3)
    learner = Learner(Task(model(), samples, samples), None, BATCHES, seed=3)
    assert learner.steps == expected.steps == 4
    assert learner.step(Work(1, [])).loss == expected.step(Work(1, [])).loss
    assert learner.evaluate() == expected.evaluate()
    for mine, other in zip(learner.model.parameters(), expected.model.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_a_client_with_fewer_samples_than_a_batch_trains_on_what_it_has():
    learner = Learner(
        Task(tiny_model(), (X[:5], Y[:5])), None, TrainingOptions(batch=32, epochs=3, optimiser="sgd", lr=0.1)
    )
    model = tiny_model()
    for _ in range(3):  # whole batches: the order does not matter
        model.zero_grad()
        nn.functional.cross_entropy(model(X[:5]), Y[:5]).backward()
        for p in model.parameters():
            p.data -= 0.1 * p.grad
    outcome = learner.step(Work(1, []))
    assert (outcome.steps, outcome.samples, learner.steps) == (3, 15, 3)
    for mine, other in zip(learner.model.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-6)


def test_an_incomplete_last_batch_is_left_out_and_the_others_are_drawn_without_repeats():
    seen = []

    def loss(outputs, targets):
        seen.append(outputs.detach().flatten().tolist())
        return outputs.sum()

    model = nn.Identity()
    model.bias = nn.Parameter(torch.zeros(2, 2))
    task = Task(model, (torch.arange(20.0, requires_grad=True), torch.zeros(20)), loss=loss)
    Learner(task, None, TrainingOptions(epochs=2, batch=8), seed=1).step(Work(1, []))
    assert [len(batch) for batch in seen] == [8, 8, 8, 8]
    for epoch in (seen[:2], seen[2:]):
        assert len({value for batch in epoch for value in batch}) == 16
    assert seen[0] != seen[2]


EMPTY = [(X[:0], Y[:0]), TensorDataset(X[:0], Y[:0]), Rows(X[:0], Y[:0]), [], (named_halves(X[:0]), Y[:0])]


@pytest.mark.parametrize("samples", EMPTY, ids=["tensors", "TensorDataset", "dataset", "list", "dict"])
def test_a_client_with_no_sample_is_an_error_that_names_it(samples):
    with pytest.raises(LearningError, match="the training data of client 7 has no sample"):
        Learner(Task(tiny_model(), samples), client="client 7")


@pytest.mark.parametrize("samples", [(X, Y[:5]), (X, Y, Y), ((X, X[:3]), Y), ({"a": X[:2], "b": X}, Y)])
def test_inputs_and_targets_that_do_not_match_are_an_error(samples):
    with pytest.raises(LearningError, match=r"the training data of client 7 has . parts, of lengths .*equally long"):
        Learner(Task(tiny_model(), samples), client="client 7")


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_names_client_event_and_step(bad):
    calls = []

    def loss(outputs, targets):
        calls.append(1)
        value = nn.functional.cross_entropy(outputs, targets)
        return value * bad if len(calls) == 7 else value

    learner = Learner(Task(tiny_model(), (X, Y), loss=loss), None, BATCHES, client="client 7")
    learner.step(Work(1, []))
    with pytest.raises(LearningError, match=rf"client 7, event 2, step 3: the loss is {bad}; a smaller training.lr"):
        learner.step(Work(1, []))


def test_after_a_loss_that_is_not_finite_a_restored_learner_goes_on():
    broken = []

    def loss(outputs, targets):
        value = nn.functional.cross_entropy(outputs, targets)
        return value * float("nan") if broken else value

    learner, never = (Learner(Task(tiny_model(), (X, Y), loss=loss), CentroidUpdate(8), BATCHES) for _ in range(2))
    for one in (learner, never):
        one.step(Work(1, []))
    state = learner.save()
    broken.append(True)
    with pytest.raises(LearningError):
        learner.step(Work(1, []))
    broken.clear()
    learner.restore(state)
    assert learner.step(Work(1, [])).payloads[0].data == never.step(Work(1, [])).payloads[0].data


@pytest.mark.parametrize(
    ("method", "options", "other"),
    [
        ("pushcen", {"clusters": 8}, {"clusters": 16}),
        ("divshare", {"parts": 3}, {"parts": 2}),
        ("divshare", {"parts": 3}, {"parts": 3, "cut_seed": 1}),
    ],
)
def test_a_payload_encoded_otherwise_is_refused_before_anything_changes(method, options, other):
    learner, sender = tiny_learner(method, **options), tiny_learner(method, 1, **other)
    part, payload = next(iter(sender.encode().items()))
    before = learner.save()
    with pytest.raises(PayloadError, match=rf"client 0 got part {part} as .*: must be"):
        learner.fold(UNIT, part, {part: payload})
    with pytest.raises(PayloadError, match=rf"client 0 got part {part} as .*: must be"):
        learner.step(Work(UNIT, [Model(UNIT, part, {part: payload})]))
    after = learner.save()
    assert before.plain == after.plain
    assert all(torch.equal(tensor, after.tensors[name]) for name, tensor in before.tensors.items())


def bn_learner(batch_norm, seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
        nn.init.uniform_(model[1].weight)
        nn.init.uniform_(model[1].running_mean)
    return Learner(
        Task(model, (X, Y), (X, Y)), None, TrainingOptions(batch=8, lr=1e-9, batch_norm=batch_norm), seed=seed
    )


@pytest.mark.parametrize("batch_norm", ["local", "shared"])
def test_batch_norm_stays_at_home_or_is_averaged(batch_norm):
    learner, other = bn_learner(batch_norm), bn_learner(batch_norm, 1)
    mine, theirs = ({k: v.clone() for k, v in one.model.state_dict().items()} for one in (learner, other))
    learner._merge(Work(UNIT, [Model(UNIT, 0, other.encode())]))
    merged = learner.model.state_dict()
    for name in ("1.weight", "1.running_mean"):
        expected = mine[name] if batch_norm == "local" else (mine[name] + theirs[name]) / 2
        torch.testing.assert_close(merged[name], expected, rtol=0, atol=1e-6)
        assert (name in decode(learner.encode()[0])) == (batch_norm == "shared")
    torch.testing.assert_close(merged["0.weight"], (mine["0.weight"] + theirs["0.weight"]) / 2, rtol=0, atol=1e-6)


def test_evaluation_uses_running_statistics_and_changes_nothing():
    learner = bn_learner("local")
    before = learner.save()
    score = learner.evaluate()
    model = learner.model.eval()
    with torch.no_grad():
        outputs = model(X)
    assert score.metric == (outputs.argmax(1) == Y).double().mean().item()
    assert score.loss == pytest.approx(nn.functional.cross_entropy(outputs, Y).item(), rel=1e-6)
    assert score.samples == len(Y)
    after = learner.save()
    assert all(torch.equal(tensor, after.tensors[name]) for name, tensor in before.tensors.items())


def test_evaluation_in_several_batches_is_the_mean_over_samples():
    data = tiny_data(samples=1300)
    learner = Learner(Task(tiny_model(), (X, Y), data))
    with torch.no_grad():
        outputs = learner.model(data[0])
    score = learner.evaluate()
    assert score.loss == pytest.approx(nn.functional.cross_entropy(outputs, data[1]).item(), rel=1e-5)
    assert score.metric == pytest.approx((outputs.argmax(1) == data[1]).float().mean().item(), rel=1e-6)


def test_without_test_data_there_is_no_score():
    score = Learner(Task(tiny_model(), (X, Y))).evaluate()
    assert score.samples == 0
    assert score.metric != score.metric


def test_autocast_computes_in_bfloat16_and_the_loss_in_float32():
    kinds = []

    def loss(outputs, targets):
        kinds.append(outputs.dtype)
        value = nn.functional.cross_entropy(outputs, targets)
        kinds.append(value.dtype)
        return value

    fast, plain = (
        Learner(
            Task(tiny_model(), (X, Y), (X, Y), loss=loss), CentroidUpdate(8), TrainingOptions(batch=8, autocast=kind)
        )
        for kind in ("bfloat16", "off")
    )
    losses = fast.step(Work(1, [])).loss, plain.step(Work(1, [])).loss
    assert kinds == [torch.bfloat16, torch.float32] * 2 + [torch.float32] * 4
    assert losses[0] == pytest.approx(losses[1], rel=0.02)
    assert losses[0] != losses[1]
    assert {p.dtype for p in fast.model.parameters()} == {torch.float32}
    assert fast.evaluate().loss == pytest.approx(plain.evaluate().loss, rel=0.02)


def test_autocast_around_a_learner_does_not_reach_into_it():
    alone, within = (Learner(Task(tiny_model(), (X, Y), (X, Y)), CentroidUpdate(8)) for _ in range(2))
    loss = alone.step(Work(1, [])).loss
    with torch.autocast("cpu", torch.bfloat16):
        assert within.step(Work(1, [])).loss == loss
        assert within.evaluate() == alone.evaluate()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs = 0: must be a whole number, 1 or more"),
        ({"batch": 2.5}, "batch = 2.5: must be a whole number, 1 or more"),
        ({"lr": 0.0}, "lr = 0.0: must be a number above 0"),
        ({"lr": float("nan")}, "lr = nan: must be a number above 0"),
        ({"momentum": 1.0, "optimiser": "sgd"}, "momentum = 1.0: must be a number, at least 0 and less than 1"),
        ({"momentum": 0.9}, "momentum = 0.9: only muon, rmsprop, sgd have it, not 'adam'"),
        ({"weight_decay": -1.0}, "weight_decay = -1.0: must be a number, 0 or more"),
        ({"optimiser": "lion"}, "optimiser = 'lion': must be one of adadelta, adafactor, adagrad, adam, adamax, adamw"),
        ({"autocast": "int8"}, "autocast = 'int8': must be one of off, bfloat16"),
        ({"batch_norm": "none"}, "batch_norm = 'none': must be one of local, shared"),
        ({"device": "quantum"}, "device = 'quantum': must be cpu"),
    ],
)
def test_training_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(OptionError) as error:
        TrainingOptions(**options)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strength": -0.1}, "strength = -0.1: must be a number, 0 or more"),
        ({"strength": float("nan")}, "strength = nan"),
        ({"scale": "max"}, "scale = 'max': must be one of sum, mean"),
        ({"clusters": 1}, "clusters = 1"),
        ({"profile": "best"}, "profile = 'best'"),
    ],
)
def test_update_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(OptionError) as error:
        CentroidUpdate(**options)
    assert message in str(error.value)


def test_a_task_function_is_found_in_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "ours_for_a_test.py").write_text(
        "import torch\nfrom pushcen.learning import Task\n"
        "def make(client, clients):\n"
        "    return Task(torch.nn.Linear(2, 2), (torch.full((client + 1, 2), 1.0), torch.zeros(client + 1).long()))\n"
        "def wrong(client, clients):\n    return 5\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])
    tasks = [build_task(load_task("ours_for_a_test:make"), client, 3, seed=4) for client in range(3)]
    assert [len(task.train[1]) for task in tasks] == [1, 2, 3]
    assert torch.equal(tasks[0].model.weight, tasks[2].model.weight)
    assert not torch.equal(build_task(load_task("ours_for_a_test:make"), 0, 3, 5).model.weight, tasks[0].model.weight)
    with pytest.raises(LearningError, match=r"gave 5 for client 1: must be a pushcen\.learning\.Task"):
        build_task(load_task("ours_for_a_test:wrong"), 1, 3)
    with pytest.raises(OptionError, match="task = 'ours_for_a_test:nothing'"):
        load_task("ours_for_a_test:nothing")
    with pytest.raises(OptionError, match="task = 'no_such_module_at_all:f'"):
        load_task("no_such_module_at_all:f")


def test_building_a_task_leaves_the_global_stream_alone():
    before = torch.get_rng_state()
    build_task(lambda client, clients: Task(nn.Linear(2, 2), (X, Y)), 0, 1)
    assert torch.equal(before, torch.get_rng_state())


def test_what_share_leaves_out_is_trained_and_never_sent():
    task = Task(tiny_model(), (X, Y), share=lambda name: name.startswith("0"))
    learner = Learner(task, CentroidUpdate(8), BATCHES)
    before = learner.model[2].weight.clone()
    outcome = learner.step(Work(UNIT, []))
    assert set(decode(outcome.payloads[0])) == {"0.weight", "0.bias"}
    assert not torch.equal(learner.model[2].weight, before)
    head = learner.model[2].weight.clone()
    learner._merge(Work(UNIT, [Model(UNIT, 0, outcome.payloads)]))
    assert torch.equal(learner.model[2].weight, head)


def test_sizes_are_known_before_anything_is_encoded():
    for method, options in (("pushcen", {"clusters": 8}), ("push-sum", {}), ("divshare", {"parts": 3})):
        learner = tiny_learner(method, **options)
        assert learner.sizes() == {part: len(payload.data) for part, payload in learner.encode().items()}
    assert Schema.of(tiny_model()).size == 92


def test_weights_spoilt_by_the_last_step_are_an_error_that_names_the_client():
    task = Task(nn.Linear(4, 2), (torch.randn(8, 4), torch.randint(2, (8,))))
    learner = Learner(task, training=TrainingOptions(optimiser="sgd", lr=1e38, batch=8), client="client 7")
    with pytest.raises(LearningError, match=r"client 7, event 1: .*not finite|client 7, event 1: .*value of"):
        learner.step(Work(1, []))


class Own(nn.Dropout):
    """Dropout with a forward of its own."""

    def forward(self, x):
        return x + 1


class Bare(nn.Dropout):
    """Dropout under another name."""


def test_dropout_with_a_forward_of_its_own_keeps_it():
    model = nn.Sequential(Own(0.5), nn.Flatten(), nn.Linear(6, 4))
    Learner(Task(model, (X, Y)))
    assert torch.equal(model[0](X), X + 1)


def test_dropout_under_another_name_zeroes_single_values_from_the_clients_stream():
    outputs = []
    for kind in (Bare, nn.Dropout):
        model = nn.Sequential(kind(0.5), nn.Linear(6, 4))
        Learner(Task(model, (X, Y)), seed=5)
        outputs.append(model[0](torch.ones(4, 3, 8)))
    assert torch.equal(*outputs)
    assert any(0 < channel.count_nonzero() < 8 for sample in outputs[0] for channel in sample)


def test_a_dropout_layer_with_a_forward_by_itself_keeps_it_too():
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(6, 4))
    model[0].forward = lambda x: x + 1
    Learner(Task(model, (X, Y)))
    assert torch.equal(model[0](X), X + 1)


def test_a_copy_of_a_model_in_training_is_evaluated_without_dropout():
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(6, 4))
    Learner(Task(model, (X, Y)))
    copied = copy.deepcopy(model.train()).eval()
    assert torch.equal(copied[0](X), X)
    assert not torch.equal(model[0](X), X)


def test_a_probability_that_changes_is_heeded():
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(6, 4))
    Learner(Task(model, (X, Y)))
    model[0].p = 1.0
    assert not model[0](X).any()


METRICS = {
    "a number a token": (lambda o, y: torch.ones(len(y), 8), r"a tensor \[4, 8\] float32 for 4 samples"),
    "a mean": (lambda o, y: torch.tensor(0.5), r"a tensor \[\] float32 for 4 samples"),
    "a Python float": (lambda o, y: 0.5, r"0.5, <class 'float'> for 4 samples"),
    "too few": (lambda o, y: torch.ones(5), r"a tensor \[5\] float32"),
    "nothing": (lambda o, y: None, r"None, <class 'NoneType'>"),
    "transposed": (lambda o, y: torch.ones(1, len(y)), r"a tensor \[1, 4\]"),
    "complex": (lambda o, y: torch.ones(len(y), dtype=torch.complex64), r"a tensor \[4\] complex64"),
}


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_that_gives_anything_but_a_number_a_sample_is_refused_before_anything_is_trained(name):
    metric, text = METRICS[name]
    with pytest.raises(LearningError, match=rf"client 7: the metric gave {text}.*one number a sample, a tensor \[4\]"):
        Learner(Task(tiny_model(), (X, Y), (X, Y), metric=metric), client="client 7")


@pytest.mark.parametrize("form", [lambda x: x[:, 0], lambda x: x[:, :1]], ids=["[20]", "[20, 1]"])
def test_one_output_a_sample_has_no_top_1_accuracy(form):
    """Its highest score is always the first: the share of zeros among the targets, whatever was learnt."""

    class One(nn.Linear):
        def forward(self, x):
            return form(super().forward(x))

    loss = nn.MSELoss()
    task = Task(One(6, 1), (X, Y), (X, Y), loss=lambda o, y: loss(o.flatten(), y.float()))
    with pytest.raises(TaskError, match=r"client 7, evaluation: .*the outputs are \[20.*needs a score for each class"):
        Learner(task, client="client 7").evaluate()


@pytest.mark.parametrize("form", [lambda x: x, lambda x: x.bool(), lambda x: x[:, None], lambda x: x.numpy()])
def test_one_number_a_sample_of_any_type_is_a_metric(form):
    def metric(outputs, targets):
        return form((outputs.argmax(-1) == targets).float())

    learner = Learner(Task(tiny_model(), (X, Y), (X, Y), metric=metric))
    assert learner.evaluate() == Learner(Task(tiny_model(), (X, Y), (X, Y))).evaluate()
