"""Metrics by name, by `module:Class`, or as functions and objects; and what is usual where a task brings none."""

import difflib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from pushcen.errors import OptionError, PushcenError, TaskError
from pushcen.learning.metrics import forms
from pushcen.learning.metrics.classes import CountTally, RankTally
from pushcen.learning.metrics.forms import Meaning, decisions, numbers
from pushcen.learning.metrics.own import ObjectTally
from pushcen.learning.metrics.tallies import ErrorTally, LossTally, MeanTally, Scored, Tally, VarianceTally
from pushcen.learning.mistakes import form_of, told
from pushcen.locate import locate
from pushcen.measure import ACCURACY, Measure, is_name


class Metric(NamedTuple):
    """What is measured, and what notes it."""

    measure: Measure
    start: Callable[[], Tally]
    """Makes a tally for an evaluation."""


MEASURES = {
    measure.name: measure
    for measure in (
        ACCURACY,
        Measure("top5", percent=True),
        Measure("balanced_accuracy", percent=True, pooled=True),
        Measure("f1", pooled=True),
        Measure("auroc", pooled=True),
        Measure("rmse", higher_is_better=False, pooled=True),
        Measure("mse", higher_is_better=False),
        Measure("mae", higher_is_better=False),
        Measure("r2", pooled=True),
        Measure("perplexity", higher_is_better=False, pooled=True),
        Measure("loss", higher_is_better=False),
    )
}
"""The metrics that are known by name."""
_ALSO = {"auc": "auroc", "rocauc": "auroc", "f1macro": "f1", "macrof1": "f1", "top5accuracy": "top5", "r2score": "r2"}
_TAKEN = {
    "time", "online", "events", "steps", "bytes_sent", "flops", "train_loss", "failed_events", "given_up", "clients",
    "metric", "metrics", "loss", "delayed_best", "delayed_best_sd",
}  # fmt: skip
"""Keys of rows that are no metric's."""


def correct(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return for each sample whether the highest score is the target's: their mean is top-1 accuracy.

    >>> correct(torch.tensor([[0.1, 0.9], [0.8, 0.2]]), torch.tensor([1, 1]))
    tensor([1., 0.])
    >>> correct(torch.tensor([0.1, 0.9]), torch.tensor([1, 1]))
    Traceback (most recent call last):
    ValueError: the outputs are [2] float32: top-1 accuracy needs a score for each class, ...
    """
    if outputs.dim() < 2 or outputs.shape[-1] < 2:
        raise ValueError(
            f"the outputs are {form_of(outputs)}: top-1 accuracy needs a score for each class, [samples, classes]; "
            "for one output a sample, give the Task a metric of its own"
        )
    return (outputs.argmax(-1) == targets).float()


def total_of(values: Any, samples: int, client: str) -> float:
    """Add up what a metric gave for so many samples: one number each, or it is an error.

    >>> total_of(torch.tensor([True, False, True]), 3, "client 7")
    2.0
    >>> total_of(torch.zeros(3, 9), 3, "client 7")
    Traceback (most recent call last):
    pushcen.errors.TaskError: client 7: the metric gave a tensor [3, 9] float32 for 3 samples: must be one ...
    """
    if isinstance(values, np.ndarray):
        values = torch.from_numpy(values)
    given = isinstance(values, torch.Tensor)
    if not given or values.dim() < 1 or values.shape[0] != samples or values.numel() != samples or values.is_complex():
        what = f"a tensor {form_of(values)}" if given else f"{values!r:.40}, {type(values)}"
        raise TaskError(
            f"{client}: the metric gave {what} for {samples} samples: must be one number a sample, a tensor [{samples}]"
            "; no mean over the batch, and where a sample has several outputs, the mean over these"
        )
    return float(values.double().sum())


def metrics_of(given: Any, loss: Any, client: str) -> tuple[Metric, ...]:
    """Return the metrics of a task, checked; the first is what it is measured by.

    `given` is a name, `module:Class`, a function of outputs and targets, an object with `update` and `compute`, or a
    list of these. A function alone is called accuracy, unless it says by `higher_is_better` which way is better.

    >>> [metric.measure.title for metric in metrics_of(["RMSE", "r2"], None, "client 7")]
    ['RMSE', 'R2']
    >>> metrics_of("acuracy", None, "client 7")
    Traceback (most recent call last):
    pushcen.errors.TaskError: client 7: the task's metric is 'acuracy': did you mean accuracy? There are accuracy, ...
    """
    several = list(given) if isinstance(given, list | tuple) else [given]
    if not several:
        raise TaskError(f"{client}: the task's metric is {given!r}: a list must have one at least")
    meaning = Meaning.of(loss)
    found = [_metric(one, meaning, client, alone=len(several) == 1) for one in several]
    names = [metric.measure.name for metric in found]
    if twice := [name for at, name in enumerate(names) if name in names[:at]]:
        raise TaskError(f"{client}: the task's metrics are {', '.join(names)}: {twice[0]} is there twice")
    return tuple(found)


def metric_names(text: str) -> list[str]:
    """Return the metrics that a text names, by commas; of those that come along, each by its own name.

    >>> metric_names("AUC, f1, my.module:Metric")
    ['auroc', 'f1', 'my.module:Metric']
    >>> metric_names("acuracy")
    Traceback (most recent call last):
    pushcen.errors.OptionError: metrics = 'acuracy': 'acuracy' is not known: did you mean accuracy? There are ...
    """
    said = f"metrics = {text!r:.80}"
    some = [name for name in map(str.strip, text.split(",")) if name]
    names = [name if ":" in name else _known(name, f"{said}: {name!r:.40} is not known", OptionError) for name in some]
    if twice := [name for at, name in enumerate(names) if name in names[:at]]:
        raise OptionError(f"{said}: {twice[0]} is there twice")
    return names


def _metric(given: Any, meaning: Meaning, client: str, *, alone: bool) -> Metric:
    if isinstance(given, str) and ":" not in given:
        name = _known(given, f"{client}: the task's metric is {given!r:.80}", TaskError)
        return Metric(MEASURES[name], _starts(meaning)[name])
    thing = _made(_located(given, client) if isinstance(given, str) else given, client)
    if hasattr(thing, "update") and hasattr(thing, "compute"):
        return Metric(_measure_of(thing, type(thing).__name__, client, pooled=True), partial(ObjectTally, thing))
    if not callable(thing):
        raise TaskError(
            f"{client}: the task's metric is {thing!r:.80}: must be a name ({', '.join(MEASURES)}), module:Class, a "
            "function, an object with update and compute, or a list of these"
        )
    if alone and not hasattr(thing, "higher_is_better"):
        return Metric(ACCURACY, partial(MeanTally, partial(_by_sample, thing)))
    name = "accuracy" if thing is correct else getattr(thing, "__name__", type(thing).__name__)
    return Metric(_measure_of(thing, name, client), partial(MeanTally, partial(_by_sample, thing)))


def _known(given: str, said: str, kind: type[PushcenError]) -> str:
    """Return the name of a metric that comes along; raise an error of this kind, which begins with `said`, if none."""
    plain = given.lower().replace("-", "").replace("_", "").replace(" ", "")
    names = {name.replace("_", ""): name for name in MEASURES} | _ALSO
    if plain in names:
        return names[plain]
    near = difflib.get_close_matches(plain, names, 1)
    hint = f"did you mean {names[near[0]]}? " if near else ""
    raise kind(
        f"{said}: {hint}There are {', '.join(MEASURES)}; or module:Class, with update and compute, or a function"
    )


def _located(given: str, client: str) -> Any:
    try:
        return locate(given, "metric")
    except PushcenError as error:
        raise TaskError(f"{client}: the task's {error}") from None


def _made(thing: Any, client: str) -> Any:
    """Return an object of a class, and anything else as it is."""
    try:
        return thing() if isinstance(thing, type) else thing
    except Exception as error:
        raise TaskError(
            f"{client}: the task's metric {thing.__name__} cannot be made without arguments ({told(error)}): give the "
            "Task the object itself, or a class of your own that needs none"
        ) from error


def _measure_of(thing: Any, name: str, client: str, *, pooled: bool = False) -> Measure:
    """Return what is known of a user's own metric: by its attributes, or else by its name."""
    if not is_name(name) or name in _TAKEN:
        raise TaskError(
            f"{client}: a metric of the task is called {name!r:.60}: must be a name of letters, digits and "
            f"underscores that rows do not use for anything else ({', '.join(sorted(_TAKEN))})"
        )
    like = MEASURES.get(name.lower(), Measure(name))
    higher, percent = getattr(thing, "higher_is_better", None), getattr(thing, "percent", None)
    return Measure(
        name,
        like.higher_is_better if higher is None else bool(higher),
        like.percent if percent is None else bool(percent),
        pooled,
    )


def _starts(meaning: Meaning) -> dict[str, Callable[[], Tally]]:
    """Return what makes the tally of each metric that is known by name."""
    return {
        "accuracy": partial(MeanTally, partial(_right, meaning)),
        "top5": partial(MeanTally, partial(_among_five, meaning)),
        "balanced_accuracy": partial(CountTally, "balanced_accuracy", meaning),
        "f1": partial(CountTally, "f1", meaning),
        "auroc": partial(RankTally, meaning),
        "rmse": ErrorTally,
        "mse": partial(MeanTally, partial(_errors, "mse")),
        "mae": partial(MeanTally, partial(_errors, "mae")),
        "r2": VarianceTally,
        "perplexity": partial(LossTally, exponential=True),
        "loss": LossTally,
    }


def _by_sample(function: Callable[[Any, Any], Any], batch: Scored) -> tuple[float, int]:
    return total_of(function(batch.outputs, batch.targets), batch.count, batch.client), batch.count


def _right(meaning: Meaning, batch: Scored) -> tuple[float, int]:
    """Count right decisions, and all."""
    found = decisions(batch.outputs, batch.targets, meaning, "accuracy")
    return float((found.said("accuracy") == found.truth).sum()), found.truth.numel()


def _among_five(meaning: Meaning, batch: Scored) -> tuple[float, int]:
    scores, truth, _ = decisions(batch.outputs, batch.targets, meaning, "top5")
    if truth.dim() > 1 or scores.shape[1] < 6:
        raise ValueError(
            f"the outputs are {form_of(batch.outputs)}: top5 needs scores of six classes at least, [samples, classes]"
        )
    return float((scores.topk(5).indices == truth[:, None]).sum()), len(truth)


def _errors(metric: str, batch: Scored) -> tuple[float, int]:
    outputs, targets = numbers(batch.outputs, batch.targets, metric)
    apart = outputs - targets
    return float((apart.abs() if metric == "mae" else apart.square()).sum()), targets.numel()


def usual(loss: Any, metric: Any, targets: Any) -> tuple[Any, Any]:
    """Return loss and metric of a task, with those that it does not bring chosen by some of its `targets`.

    Numbers are a regression: mean squared error and RMSE. Rows that add up to one are distributions over classes. A
    loss of None is the model's own.

    >>> usual(torch.nn.functional.cross_entropy, None, torch.tensor([0.5, 2.5]))[1]
    'rmse'
    >>> usual(torch.nn.functional.cross_entropy, None, torch.tensor([0, 2]))[1]
    'accuracy'
    """
    if not isinstance(targets, torch.Tensor) or not targets.is_floating_point() or _distributions(loss, targets):
        return loss, "accuracy" if metric is None else metric
    if loss is torch.nn.functional.cross_entropy:
        loss = forms.mean_squared_error
    if metric is None:
        one_each = loss is None and targets.numel() == len(targets)
        if one_each or loss is forms.mean_squared_error or forms.is_one_of(loss, forms.NUMBERS):
            metric = "rmse"
        else:
            metric = "loss" if Meaning.of(loss).threshold is None else "accuracy"
    return loss, metric


def _distributions(loss: Any, targets: torch.Tensor) -> bool:
    if not forms.is_one_of(loss, forms.CLASSES) or targets.dim() < 2 or targets.shape[1] < 2:
        return False
    return bool((targets >= 0).all() and ((targets.sum(1) - 1).abs() < 1e-3).all())
