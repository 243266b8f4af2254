"""How clients train: any optimiser, groups, schedules, clipping, micro-batches, label smoothing."""

import copy
import math
import re
import warnings

import pytest
import torch
from safetensors.torch import load, save
from torch import nn

from pushcen.errors import OptionError, TaskError
from pushcen.learning import CentroidUpdate, Learner, ScheduleOptions, State, Task, TrainingOptions, Update, Work
from pushcen.learning.optimiser import _classes, optimiser_class, trial
from pushcen.learning.optimiser_state import load_optimiser, save_optimiser
from tests.learning.tasks import tiny_data, tiny_model
from tests.learning.test_save import same, through_json

OPTIMISERS = list(_classes())
SETTINGS = {  # what makes each remember as much as it can
    "adam": {"options": {"amsgrad": True}},
    "adamw": {"options": {"amsgrad": True}},
    "nadam": {"options": {"momentum_decay": 0.01}},
    "rmsprop": {"momentum": 0.5, "options": {"centered": True}},
    "sgd": {"momentum": 0.9, "options": {"nesterov": True}},
    "asgd": {"options": {"t0": 3.0}},
}


def matrices(seed=0):
    """A model that Muon can train, too."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(6, 8, bias=False), nn.Tanh(), nn.Linear(8, 4, bias=False))


def learner_of(training=None, model=None, update=None, seed=0, **task):
    training = training or TrainingOptions(batch=8, lr=0.01)
    made = Task(copy.deepcopy(model) if model else tiny_model(seed), tiny_data(seed), tiny_data(9), **task)
    return Learner(made, update or CentroidUpdate(8), training, client="client 7", seed=seed)


def weights(learner):
    return [parameter.detach().clone() for parameter in learner.model.parameters()]


def test_all_classes_of_torch_are_taken_but_two():
    every = {
        name.lower()
        for name, kind in vars(torch.optim).items()
        if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer) and kind is not torch.optim.Optimizer
    }
    assert every - set(OPTIMISERS) == {"lbfgs", "sparseadam"}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_an_optimiser_by_name_computes_what_torchs_own_does(name):
    one, other = matrices(), matrices()
    training = TrainingOptions(optimiser=name, lr=0.02, **SETTINGS.get(name, {}))
    ours = training.optimise(one)
    kind = next(kind for key, kind in vars(torch.optim).items() if key.lower() == name)
    fused = {"fused": True} if name in ("adam", "adamw", "sgd") else {}
    decay = {} if name == "rprop" else {"weight_decay": 0.0}
    momentum = {"momentum": training.momentum} if training.momentum else {}
    theirs = kind(other.parameters(), lr=0.02, **decay, **momentum, **fused, **training.options)
    inputs, targets = tiny_data()
    for _ in range(5):
        for model, optimiser in ((one, ours), (other, theirs)):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimiser.step()
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert not torch.equal(one[0].weight, matrices()[0].weight)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_every_optimiser_goes_on_bit_for_bit(name):
    training = TrainingOptions(epochs=2, batch=8, optimiser=name, lr=0.02, **SETTINGS.get(name, {}))
    learner = learner_of(training, matrices())
    learner.step(Work(1, []))
    state = through_json(learner.save())
    state = State(load(save({name: tensor.contiguous() for name, tensor in state.tensors.items()})), state.plain)
    other = learner_of(training, matrices(3))  # other weights
    other._batches.random(5)  # and elsewhere in its streams
    other.step(Work(1, []))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other.restore(state)
    assert learner.step(Work(1, [])).payloads[0].data == other.step(Work(1, [])).payloads[0].data
    same(learner.save(), other.save())


class Counting(torch.optim.Optimizer):
    """Remembers numbers of Python, as some did in earlier versions of torch."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["step"] = state.get("step", 0) + 1
                state |= {"rate": group["lr"] / (3 * state["step"]), "on": True, "old": p.detach().clone(), "no": None}
                p.add_(p.grad, alpha=-state["rate"])


def test_numbers_in_an_optimisers_memory_are_saved_as_what_they_are():
    model = nn.Linear(2, 1, bias=False)
    optimiser, fresh = Counting(model.parameters()), Counting(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimiser.step()
    load_optimiser(fresh, model, load(save(save_optimiser(optimiser, model))))
    before, after = optimiser.state[model.weight], fresh.state[model.weight]
    assert all(
        type(before[name]) is type(after[name]) and before[name] == after[name] for name in ("step", "rate", "on")
    )
    assert torch.equal(before["old"], after["old"])


def test_what_an_optimiser_remembers_in_another_form_is_refused():
    model = nn.Linear(2, 1)
    optimiser = torch.optim.LBFGS(model.parameters())
    optimiser.state[model.weight]["old"] = [torch.zeros(1)]
    with pytest.raises(TaskError, match="LBFGS keeps old of weight as list"):
        save_optimiser(optimiser, model)


@pytest.mark.parametrize(("before", "after"), [("adam", "rmsprop"), ("rmsprop", "adadelta"), ("adadelta", "rmsprop")])
def test_another_optimiser_than_before_begins_afresh(before, after):
    first, second = (TrainingOptions(batch=8, optimiser=name) for name in (before, after))
    learner, other = learner_of(first), learner_of(second)
    learner.step(Work(1, []))
    with pytest.warns(UserWarning, match="is another optimiser's"):
        other.restore(learner.save())
    assert not other._optimiser.state
    other.step(Work(1, []))


def test_adam_and_adamw_remember_the_same_and_go_on_with_it():
    learner, other = (learner_of(TrainingOptions(batch=8, optimiser=name)) for name in ("adam", "adamw"))
    learner.step(Work(1, []))
    other.restore(learner.save())
    assert other._optimiser.state


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"optimiser": "LBFGS"},
            "optimiser = 'LBFGS': it computes the loss several times a step, by a closure; must be",
        ),
        ({"optimiser": "SparseAdam"}, "optimiser = 'SparseAdam': it takes sparse gradients only; must be one of"),
        ({"optimiser": 3}, "optimiser = '3': must be one of"),
        ({"options": {"bettas": 1}}, "options = {'bettas': 1}: adam has no bettas; it has amsgrad, betas"),
        ({"options": {"lr": 1}}, "options = {'lr': 1}: adam has no lr: training.lr is its key"),
        ({"options": {"fused": True}}, "options = {'fused': True}: adam has no fused; it has"),
        ({"options": {"betas": [1.5, 0.9]}}, "options = {'betas': [1.5, 0.9]}: adam cannot use it: Invalid beta"),
        ({"options": {"betas": [0.9, 0.9, 0.9]}}, "options = {'betas': [0.9, 0.9, 0.9]}: adam cannot use it: too many"),
        ({"options": {"betas": "many"}}, "options = {'betas': 'many'}: adam cannot use it"),
        ({"options": ["betas"]}, "options = ['betas']: must be a table"),
        ({"optimiser": "sgd", "options": {"nesterov": True}}, "sgd cannot use it: Nesterov momentum requires"),
        ({"optimiser": "rprop", "weight_decay": 0.1}, "weight_decay = 0.1: only adadelta, "),
        ({"groups": [{"lr": 0.1}]}, "groups = {'lr': 0.1}: must have match, a pattern"),
        ({"groups": [{"match": "a", "lr": 0}]}, "groups = {'match': 'a', 'lr': 0}: lr = 0: must be a number above 0"),
        ({"groups": [{"match": "a", "lrr": 1}]}, "groups = {'match': 'a', 'lrr': 1}: adam has no lrr; it has amsgrad"),
        ({"groups": ["head.*"]}, "groups = 'head.*': must be a table"),
        ({"clip": -1}, "clip = -1: must be a number, 0 or more"),
        ({"micro_batch": 1.5}, "micro_batch = 1.5: must be a whole number"),
        ({"label_smoothing": 1.0}, "label_smoothing = 1.0: must be a number, at least 0 and less than 1"),
    ],
)
def test_what_an_optimiser_does_not_take_is_refused_by_name(options, said):
    with pytest.raises(OptionError) as error:
        TrainingOptions(**options)
    assert said in str(error.value)


def test_a_name_counts_in_any_case():
    assert TrainingOptions(optimiser="RMSprop") == TrainingOptions(optimiser="rmsprop")


def test_muon_refuses_a_bias_and_names_the_client():
    with pytest.raises(OptionError, match=r"training\.optimiser = 'muon': client 7: Muon only supports 2D"):
        learner_of(TrainingOptions(optimiser="muon"))


def test_an_optimiser_that_refuses_a_gradient_is_told_with_the_client_and_the_step():
    model, rows = nn.EmbeddingBag(9, 4, sparse=True), torch.arange(40).reshape(20, 2) % 9
    task = Task(model, (rows, torch.arange(20) % 4))
    learner = Learner(task, Update(), TrainingOptions(batch=8, optimiser="rmsprop"), client="client 7")
    with pytest.raises(
        TaskError, match="client 7, event 1, step 1: RMSprop: RMSprop does not support sparse gradients"
    ):
        learner.step(Work(1, []))


def test_a_group_has_options_of_its_own_and_the_first_that_matches_counts():
    groups = ({"match": "2.*", "lr": 0.5, "betas": (0.5, 0.6)}, {"match": "*.bias", "weight_decay": 0.1})
    made = TrainingOptions(lr=0.1, groups=groups).optimise(tiny_model())
    assert [(len(g["params"]), g["lr"], g["betas"], g["weight_decay"]) for g in made.param_groups] == [
        (1, 0.1, (0.9, 0.999), 0.0),
        (2, 0.5, (0.5, 0.6), 0.0),
        (1, 0.1, (0.9, 0.999), 0.1),
    ]


def test_groups_may_have_all_parameters():
    assert len(TrainingOptions(groups=({"match": "*", "lr": 0.5},)).optimise(tiny_model()).param_groups) == 1


def test_a_group_that_matches_nothing_is_an_error_that_names_what_there_is():
    training = TrainingOptions(groups=({"match": "head.*", "lr": 0.5},))
    with pytest.raises(OptionError, match=r"client 7: matches no parameter .* there are 0\.weight, 0\.bias, 2\.weight"):
        learner_of(training)


def test_a_group_trains_at_its_own_rate():
    groups = ({"match": "0.*", "lr": 1e-12},)
    learner = learner_of(
        TrainingOptions(batch=8, optimiser="sgd", lr=0.1, groups=groups), update=CentroidUpdate(8, mask=False)
    )
    before = weights(learner)
    learner.step(Work(1, []))
    moved = [float((now - then).abs().max()) for now, then in zip(weights(learner), before, strict=True)]
    assert max(moved[:2]) < 1e-6 < 1e-3 < min(moved[2:])


class Rates(CentroidUpdate):
    """Notes the rate of every step, and the norm of the gradient before it."""

    def __init__(self):
        super().__init__(8, strength=0.0)
        self.rates, self.norms = [], []

    def start(self, model):
        super().start(model)
        self.model = model

    def before_step(self):
        super().before_step()
        self.norms.append(math.sqrt(sum(float(p.grad.double().square().sum()) for p in self.model.parameters())))
        self.rates.append(self.learner._optimiser.param_groups[0]["lr"])


def rates(schedule, events, restart_at=0, **training):
    training = TrainingOptions(batch=8, lr=0.1, optimiser="sgd", schedule=schedule, **training)
    update = Rates()
    learner = update.learner = learner_of(training, update=update)
    for event in range(events):
        if restart_at and event == restart_at:
            state = through_json(learner.save())
            again = Rates()
            learner = again.learner = learner_of(training, update=again, seed=4)
            learner.restore(state)
            again.rates, update = update.rates, again
        learner.step(Work(1, []))
    return [round(rate, 6) for rate in update.rates]


def test_a_schedule_counts_events():
    schedule = ScheduleOptions("step", every=2, factor=0.5, warm_up=2)
    assert rates(schedule, 6) == [0.05, 0.05, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05]


def test_a_schedule_counts_steps():
    schedule = ScheduleOptions("cosine", unit="steps", over=4, floor=0.0)
    assert rates(schedule, 3) == [0.1, 0.085355, 0.05, 0.014645, 0.0, 0.0]


@pytest.mark.parametrize("unit", ["events", "steps"])
def test_a_schedule_goes_on_where_it_was(unit):
    schedule = ScheduleOptions("cosine", unit=unit, over=9, warm_up=3)
    assert rates(schedule, 6) == rates(schedule, 6, restart_at=3)
    assert len(set(rates(schedule, 6))) > 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kind": "linear"}, "kind = 'linear': must be one of constant, cosine, step"),
        ({"kind": "cosine"}, "over = 0: must be a whole number, 1 or more"),
        ({"kind": "cosine", "over": 3, "warm_up": 5}, "warm_up = 5: must be at most over = 3"),
        ({"kind": "cosine", "over": 3, "every": 5}, "every = 5: is for kind step, and not read by cosine"),
        ({"kind": "step"}, "every = 0: must be a whole number, 1 or more"),
        ({"over": 9}, "over = 9: is for kind cosine, and not read by constant"),
        ({"unit": "epochs"}, "unit = 'epochs': must be one of events, steps"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(options, said):
    with pytest.raises(OptionError, match=f"^{re.escape(said)}"):
        ScheduleOptions(**options)


def test_the_gradient_is_clipped():
    found = []
    for clip in (0.0, 0.05):
        update = Rates()
        learner = update.learner = learner_of(TrainingOptions(epochs=2, batch=8, clip=clip), update=update)
        learner.step(Work(1, []))
        found.append(update.norms)
    assert min(found[0]) > 0.05
    assert found[1] == pytest.approx([0.05] * 4, rel=1e-3)


@pytest.mark.parametrize("size", [1, 3, 4, 8, 100])
def test_micro_batches_make_the_same_step(size):
    plain, pieces = (learner_of(TrainingOptions(batch=8, lr=0.1, optimiser="sgd", micro_batch=n)) for n in (0, size))
    one, other = (learner.step(Work(1, [])) for learner in (plain, pieces))
    for a, b in zip(weights(plain), weights(pieces), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-6)
    assert (one.steps, one.samples, one.flops) == (other.steps, other.samples, other.flops)
    assert other.loss == pytest.approx(one.loss, abs=1e-6)


def test_a_micro_batch_holds_no_more_samples_than_it_says():
    seen = []

    def loss(outputs, targets):
        seen.append(len(targets))
        return nn.functional.cross_entropy(outputs, targets)

    learner_of(TrainingOptions(batch=8, micro_batch=3), loss=loss).step(Work(1, []))
    assert seen == [3, 3, 2] * 2


def test_labels_are_smoothed_in_training_and_not_in_evaluation():
    smooth = TrainingOptions(batch=8, label_smoothing=0.2)
    own = lambda outputs, targets: nn.functional.cross_entropy(outputs, targets, label_smoothing=0.2)  # noqa: E731
    learner, twin = learner_of(smooth), learner_of(TrainingOptions(batch=8), loss=own)
    assert learner.step(Work(1, [])).loss == twin.step(Work(1, [])).loss
    assert all(torch.equal(a, b) for a, b in zip(weights(learner), weights(twin), strict=True))
    plain = learner_of(TrainingOptions(batch=8))
    plain.restore(learner.save())
    assert learner.evaluate() == plain.evaluate()
    assert learner.evaluate().loss != twin.evaluate().loss


def test_label_smoothing_is_refused_beside_a_loss_of_ones_own():
    with pytest.raises(
        OptionError, match=r"training\.label_smoothing = 0\.1: client 7: must be 0 where task or model has its own loss"
    ):
        learner_of(TrainingOptions(label_smoothing=0.1), loss=nn.functional.mse_loss)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_what_a_forecast_counts_is_what_is_remembered(name):
    training = TrainingOptions(optimiser=name, **SETTINGS.get(name, {}))
    learner = learner_of(TrainingOptions(batch=8, optimiser=name, **SETTINGS.get(name, {})), matrices())
    learner.step(Work(1, []))
    weight = learner.model[0].weight
    large = [v for v in learner._optimiser.state[weight].values() if torch.is_tensor(v) and v.numel() == weight.numel()]
    assert training.memory_factor == len(large)


def test_a_trial_changes_nothing():
    before = torch.get_rng_state()
    assert set(trial(optimiser_class("adam"), {"lr": 0.1})) == {"step", "exp_avg", "exp_avg_sq"}
    assert torch.equal(before, torch.get_rng_state())
