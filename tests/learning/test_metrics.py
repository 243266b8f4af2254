"""Metrics by name are scikit-learn's, over a client's outputs and those of many; what cannot be is refused."""

import math
import sys
from functools import partial

import numpy as np
import pytest
import torch
from sklearn import metrics as sk
from torch import nn
from torch.nn import functional

from pushcen.errors import TaskError
from pushcen.learning import Learner, Task, TrainingOptions, Work, correct, pooled
from pushcen.learning.metrics import MEASURES, Scored, metrics_of
from pushcen.learning.metrics import tallies as tallies_
from tests.learning.tasks import tiny_data, tiny_model

CROSS, LOGITS = functional.cross_entropy, nn.BCEWithLogitsLoss()
DRAW = torch.Generator().manual_seed(5)


def batches_of(outputs, targets, sizes=(7, 30, 13), loss=0.0):
    """Yield the rows of both, in batches of different sizes."""
    begin = 0
    for size in sizes:
        rows = slice(begin, begin + size)
        yield Scored(outputs[rows], targets[rows], loss, size, "client 7")
        begin += size


def value(name, outputs, targets, loss=CROSS, sizes=(7, 30, 13)):
    """Return a metric in three ways that must agree: batch by batch, at once, and pooled over three clients."""
    [metric] = metrics_of([name], loss, "client 7")
    tally, each = metric.start(), []
    for batch in batches_of(outputs, targets, sizes):
        tally.update(batch)
        each.append(metric.start())
        each[-1].update(batch)
    assert pooled(each) == pytest.approx(tally.value(), nan_ok=True)
    assert each[0].value() == pytest.approx(pooled(each[:1]), nan_ok=True)  # pooling leaves them as they are
    return tally.value()


SCORES, CLASSES = torch.randn(50, 8, generator=DRAW), torch.randint(8, (50,), generator=DRAW)
LABELS = (torch.rand(50, 8, generator=DRAW) > 0.6).float()
SHARES = SCORES.softmax(-1).numpy()
NUMBERS, OTHERS = torch.randn(50, 2, generator=DRAW) + 100, torch.randn(50, 2, generator=DRAW) + 100
EXPECTED = {
    "accuracy": sk.accuracy_score(CLASSES, SCORES.argmax(1)),
    "top5": sk.top_k_accuracy_score(CLASSES, SCORES, k=5, labels=range(8)),
    "balanced_accuracy": sk.balanced_accuracy_score(CLASSES, SCORES.argmax(1)),
    "f1": sk.f1_score(CLASSES, SCORES.argmax(1), average="macro"),
    "auroc": sk.roc_auc_score(CLASSES, SCORES.double().softmax(-1).numpy(), multi_class="ovr", average="macro"),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_metrics_of_classes_are_scikit_learns(name):
    assert value(name, SCORES, CLASSES) == pytest.approx(EXPECTED[name], rel=1e-6)


@pytest.mark.parametrize("name", EXPECTED)
def test_pixels_and_tokens_count_like_samples_and_those_of_minus_100_do_not(name):
    padded = torch.cat([SCORES, torch.randn(6, 8, generator=DRAW)]).reshape(14, 2, 2, 8)
    truth = torch.cat([CLASSES, torch.full((6,), -100)]).reshape(14, 2, 2)
    assert value(name, padded.movedim(-1, 1), truth, sizes=(3, 11)) == pytest.approx(EXPECTED[name], rel=1e-6)
    tokens, truth = padded.reshape(7, 8, 8)[:, :7], truth.reshape(7, 8)[:, :7]
    kept = truth.flatten() != -100
    flat = tokens.flatten(0, 1)[kept], truth.flatten()[kept]
    assert value(name, tokens, truth, sizes=(7,)) == pytest.approx(value(name, *flat, sizes=(len(flat[1]),)))


@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss(ignore_index=255), partial(CROSS, ignore_index=255)])
def test_the_target_that_a_loss_ignores_is_left_out(loss):
    truth = torch.where(torch.arange(50) < 10, 255, CLASSES)
    assert value("f1", SCORES, truth, loss) == pytest.approx(value("f1", SCORES[10:], CLASSES[10:], sizes=(40,)))


def test_metrics_of_labels_are_scikit_learns():
    said, truth = (SCORES > 0).numpy(), LABELS.numpy()
    assert value("accuracy", SCORES, LABELS, LOGITS) == pytest.approx((said == truth).mean())
    assert value("f1", SCORES, LABELS, LOGITS) == pytest.approx(sk.f1_score(truth, said, average="macro"))
    assert value("auroc", SCORES, LABELS, LOGITS) == pytest.approx(sk.roc_auc_score(truth, SCORES, average="macro"))
    each = [sk.balanced_accuracy_score(truth[:, at], said[:, at]) for at in range(8)]
    assert value("balanced_accuracy", SCORES, LABELS, LOGITS) == pytest.approx(np.mean(each))


@pytest.mark.parametrize("form", [(50,), (50, 1)])
@pytest.mark.parametrize(("loss", "outputs"), [(LOGITS, SCORES[:, 0]), (nn.BCELoss(), SCORES[:, 0].sigmoid())])
def test_one_output_is_yes_or_no_by_its_loss(form, loss, outputs):
    truth, said = LABELS[:, 0], SCORES[:, 0] > 0
    given = outputs.reshape(form), truth, loss
    assert value("accuracy", *given) == pytest.approx(sk.accuracy_score(truth, said))
    assert value("f1", *given) == pytest.approx(sk.f1_score(truth, said, average="macro"))
    assert value("balanced_accuracy", *given) == pytest.approx(sk.balanced_accuracy_score(truth, said))
    assert value("auroc", *given) == pytest.approx(sk.roc_auc_score(truth, SCORES[:, 0]))


def test_two_classes_and_ties_have_scikit_learns_area():
    truth = LABELS[:, 0].long()
    assert value("auroc", SCORES[:, :2], truth) == pytest.approx(
        sk.roc_auc_score(truth, SCORES[:, 1] - SCORES[:, 0]), rel=1e-6
    )
    tied = SCORES[:, 0].round()
    assert value("auroc", tied, truth, LOGITS) == pytest.approx(sk.roc_auc_score(truth, tied))


def test_distributions_as_targets_are_their_likeliest_class():
    soft = functional.one_hot(CLASSES, 8) * 0.8 + 0.025
    assert value("accuracy", SCORES, soft) == pytest.approx(EXPECTED["accuracy"])


def test_metrics_of_numbers_are_scikit_learns():
    given = OTHERS, NUMBERS, nn.MSELoss()
    assert value("rmse", *given) == pytest.approx(math.sqrt(sk.mean_squared_error(NUMBERS, OTHERS)))
    assert value("mse", *given) == pytest.approx(sk.mean_squared_error(NUMBERS, OTHERS))
    assert value("mae", *given) == pytest.approx(sk.mean_absolute_error(NUMBERS, OTHERS))
    assert value("r2", *given) == pytest.approx(sk.r2_score(NUMBERS, OTHERS))
    column = OTHERS[:, :1], NUMBERS[:, 0]  # [50, 1] and [50]: no product of both
    assert value("r2", *column) == pytest.approx(sk.r2_score(NUMBERS[:, 0], OTHERS[:, 0]))


def test_perplexity_is_the_exponential_of_all_loss_over_all_tokens():
    [metric] = metrics_of(["perplexity"], CROSS, "client 7")
    one, other = metric.start(), metric.start()
    one.update(Scored(None, None, 2.0, 10, "client 7"))
    other.update(Scored(None, None, 1.0, 30, "client 8"))
    assert one.value() == pytest.approx(math.exp(2.0))
    assert pooled([one, other]) == pytest.approx(math.exp(50 / 40))


@pytest.mark.parametrize(
    ("name", "outputs", "targets", "loss"),
    [
        ("auroc", SCORES[:, :2], torch.ones(50).long(), CROSS),
        ("auroc", SCORES[:, 0], torch.zeros(50), LOGITS),
        ("r2", SCORES[:, 0], torch.ones(50), nn.MSELoss()),
        ("auroc", SCORES[:, :2] * math.nan, torch.arange(50) % 2, CROSS),
    ],
)
def test_what_is_undefined_for_a_client_is_not_a_number(name, outputs, targets, loss):
    assert math.isnan(value(name, outputs, targets, loss))


def test_a_client_with_one_class_counts_where_all_are_pooled():
    [metric] = metrics_of(["auroc"], CROSS, "client 7")
    truth = (torch.arange(50) >= 25).long()
    halves = [metric.start(), metric.start()]
    for half, rows in zip(halves, (slice(25), slice(25, 50)), strict=True):
        half.update(Scored(SCORES[rows, :2], truth[rows], 0.0, 25, "client 7"))
        assert math.isnan(half.value())
    assert pooled(halves) == pytest.approx(sk.roc_auc_score(truth, SCORES[:, 1] - SCORES[:, 0]), rel=1e-6)


@pytest.mark.parametrize(
    ("name", "outputs", "targets", "loss", "told"),
    [
        (
            "auroc",
            SCORES[:, 0],
            NUMBERS[:, 0],
            nn.MSELoss(),
            r"the outputs are \[7\] float32, and a target is .* 0 and 1",
        ),
        ("f1", SCORES, NUMBERS[:, 0], CROSS, r"\[7, 8\] float32, the targets \[7\] float32: f1 needs a score for each"),
        ("accuracy", SCORES[:, 0], LABELS[:, 0], nn.MSELoss(), r"from where on they are yes: BCEWithLogitsLoss"),
        ("f1", SCORES[:, :3], CLASSES, CROSS, r"a target is \d: must be from 0 to 2"),
        ("top5", SCORES[:, :5], CLASSES % 5, CROSS, r"top5 needs scores of six classes at least"),
        ("rmse", SCORES, CLASSES, CROSS, r"\[7, 8\] float32, the targets \[7\] int64: rmse needs both in one form"),
        ("f1", {"logits": SCORES}, CLASSES, CROSS, r"f1 needs a tensor each"),
    ],
)
def test_a_metric_that_does_not_fit_the_outputs_is_told_with_what_would(name, outputs, targets, loss, told):
    [metric] = metrics_of([name], loss, "client 7")
    few = outputs if isinstance(outputs, dict) else outputs[:7]
    with pytest.raises(ValueError, match=told):
        metric.start().update(Scored(few, targets[:7], 0.0, 7, "client 7"))


class Kappa:
    """Counts, by torchmetrics' interface."""

    higher_is_better = False

    def __init__(self):
        self.reset()

    def reset(self):
        self.seen = []

    def update(self, outputs, targets):
        self.seen.append((outputs.argmax(-1), targets))

    def compute(self):
        said, truth = (torch.cat(one) for one in zip(*self.seen, strict=True))
        return torch.tensor(sk.cohen_kappa_score(truth, said))


def test_a_class_with_update_and_compute_is_a_metric_and_is_pooled():
    expected = sk.cohen_kappa_score(CLASSES, SCORES.argmax(1))
    assert value(f"{__name__}:Kappa", SCORES, CLASSES) == pytest.approx(expected)
    assert value(Kappa(), SCORES, CLASSES) == value(Kappa, SCORES, CLASSES) == pytest.approx(expected)
    [metric] = metrics_of([Kappa()], CROSS, "client 7")
    assert metric.measure.heading == "Kappa, lower is better"


def test_outputs_that_are_too_many_are_not_kept(monkeypatch):
    for name in ("own", "classes"):
        monkeypatch.setattr(sys.modules[f"pushcen.learning.metrics.{name}"], "MOST", 100)
    batch = Scored(SCORES, CLASSES, 0.0, 50, "client 7")
    [own, area] = metrics_of([Kappa(), "auroc"], CROSS, "client 7")
    one = own.start()
    one.update(batch)
    assert one.kept is None
    assert math.isnan(pooled([one, one]))
    assert one.value() == pytest.approx(sk.cohen_kappa_score(CLASSES, SCORES.argmax(1)))
    with pytest.raises(ValueError, match="auroc keeps every score of the test data, and these are over 100"):
        area.start().update(batch)
    assert tallies_.MOST == 1 << 25


class Vector(Kappa):
    def compute(self):
        return torch.zeros(3)


class Needs:
    def __init__(self, classes):
        pass


def twice(outputs, targets):
    return 2.0 * (outputs.argmax(-1) == targets)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            "acuracy",
            r"the task's metric is 'acuracy': did you mean accuracy\? There are accuracy, top5",
        ),
        ("nothing like it", r"the task's metric is 'nothing like it': There are accuracy"),
        ("math:nothing", r"the task's metric = 'math:nothing': module math has no nothing"),
        (f"{__name__}:Needs", r"cannot be made without arguments .*: give the Task the object itself"),
        (f"{__name__}:Vector", r"Vector.compute gave a tensor \[3\] float32: must be one number"),
        ([], r"the task's metric is \[\]: a list must have one at least"),
        (["f1", "F1"], r"the task's metrics are f1, f1: f1 is there twice"),
        (["f1", lambda o, y: y], r"is called '<lambda>': must be a name of letters"),
        (7, r"the task's metric is 7: must be a name"),
        ("rmse", r", evaluation: ValueError: the outputs are \[4, 4\] float32, the targets \[4\] int64: rmse"),
        (["accuracy", "r2"], r"r2 needs both in one form"),
    ],
)
def test_a_metric_that_cannot_be_is_refused_before_anything_is_trained(given, told):
    data = tiny_data()
    task = Task(tiny_model(), data, data, metric=given)
    with pytest.raises(TaskError, match=rf"client 7.*{told}"):
        Learner(task, client="client 7")


def test_a_rehearsal_draws_from_no_stream_and_leaves_the_model_in_its_mode():
    data, model = tiny_data(), nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 4))
    model[1].eval()
    torch.manual_seed(1)
    before, drawn = {name: tensor.clone() for name, tensor in model.state_dict().items()}, torch.get_rng_state()
    Learner(Task(model, data, Drawing(data), metric="f1"))
    assert [one.training for one in model] == [True, False, True, True]
    assert torch.equal(torch.get_rng_state(), drawn)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


class Drawing(torch.utils.data.Dataset):
    """Augments what it gives."""

    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data[0])

    def __getitem__(self, at):
        return self.data[0][at] + torch.randn(6), self.data[1][at]


def test_several_metrics_are_scored_at_once_and_the_first_is_the_one():
    data = tiny_data(samples=1300)
    score = Learner(Task(tiny_model(), data, data, metric=["f1", "accuracy", "loss"])).evaluate()
    alone = Learner(Task(tiny_model(), data, data)).evaluate()
    assert score.others == (alone.metric, alone.loss)
    assert (score.loss, score.samples) == (alone.loss, alone.samples)
    assert score.metric == Learner(Task(tiny_model(), data, data, metric="f1")).evaluate().metric


def test_a_function_is_called_accuracy_unless_it_says_which_way_is_better_or_has_company():
    def mistakes(outputs, targets):
        return outputs.argmax(-1) != targets

    [alone] = metrics_of(mistakes, CROSS, "client 7")
    assert alone.measure == MEASURES["accuracy"]
    assert [one.measure.name for one in metrics_of([correct, mistakes], CROSS, "client 7")] == ["accuracy", "mistakes"]
    mistakes.higher_is_better, mistakes.percent = False, True
    [alone] = metrics_of(mistakes, CROSS, "client 7")
    assert alone.measure.heading == "mistakes %, lower is better"


TARGETS = {
    "numbers": (torch.randn(20), None, nn.Linear(6, 1), "rmse"),
    "numbers in a column": (torch.randn(20, 1), None, nn.Linear(6, 1), "rmse"),
    "several numbers": (torch.randn(20, 3), None, nn.Linear(6, 3), "rmse"),
    "float64": (torch.randn(20).double(), None, nn.Linear(6, 1), "rmse"),
    "a loss of numbers": (torch.randn(20, 1), nn.L1Loss(), nn.Linear(6, 1), "rmse"),
    "labels": (torch.ones(20, 3), nn.BCEWithLogitsLoss(), nn.Linear(6, 3), "accuracy"),
    "a loss of one's own": (torch.randn(20), lambda o, y: (o[:, 0] - y).abs().mean(), nn.Linear(6, 2), "loss"),
    "distributions": (torch.full((20, 4), 0.25), None, nn.Linear(6, 4), "accuracy"),
    "classes": (torch.randint(4, (20,)), None, nn.Linear(6, 4), "accuracy"),
}


@pytest.mark.parametrize("name", TARGETS)
def test_the_usual_metric_fits_the_targets(name):
    targets, loss, model, expected = TARGETS[name]
    data = torch.randn(20, 6), targets
    task = Task(model, data, data, **({} if loss is None else {"loss": loss}))
    learner = Learner(task, training=TrainingOptions(batch=10))
    assert [one.name for one in learner.measures] == [expected]
    learner.step(Work(1, []))
    assert math.isfinite(learner.evaluate().metric)


def test_a_regression_needs_no_more_than_a_model_and_data():
    draw = torch.Generator().manual_seed(1)
    inputs = torch.randn(256, 4, generator=draw)
    targets = inputs @ torch.tensor([1.0, -2.0, 0.5, 0.0]) + 3
    learner = Learner(Task(nn.Linear(4, 1), (inputs, targets), (inputs, targets)), training=TrainingOptions(lr=0.05))
    for _ in range(20):
        learner.step(Work(1, []))
    assert learner.evaluate().metric < 0.05


def test_class_numbers_as_floats_are_told_what_would_be_right():
    inputs, labels = tiny_data()
    learner = Learner(Task(tiny_model(), (inputs, labels.float())), client="client 7")
    with pytest.raises(TaskError, match=r"client 7.*\[20\] float32, the outputs \[20, 4\].*targets.long\(\)"):
        learner.step(Work(1, []))
