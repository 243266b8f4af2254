"""What a PushCen compute event costs beside plain training of the same batches, on one thread."""

import statistics
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, dataclass
from functools import partial

import torch
from torch import nn

from pushcen.bench import lora
from pushcen.bench.common import best_seconds, time_ratio, trained_lenet, trained_resnet18
from pushcen.learning import CentroidUpdate, Learner, Model, Task, TrainingOptions, Update, Work
from pushcen.learning.event_steps import EventOptimiser
from pushcen.methods import PushCenLean

BATCHES = {"lenet": 12, "resnet18": 25}
TURNS = {"lenet": 14, "resnet18": 2}
PAIRS = {"lenet": 7, "resnet18": 3}
_MESSAGES = 10


@dataclass(frozen=True)
class LearningFigures:
    """What `pushcen bench learning --json` prints."""

    overhead_vs_plain: dict[str, float]
    """Time of a compute event (10 messages merged, anchor, mask, two clusterings, encoding) over plain training; of
    PushCen lean for `lenet_lean`, to the nearest of four references; with adapters of a frozen transformer for `lora`.
    """
    parts_vs_plain: dict[str, dict[str, float]]
    """Time of each of its parts alone, over the same."""
    lora: dict[str, float]
    """Bytes of a push over those of what trains; memory of 50 clients over one backbone and 50 adapters with Adam."""

    def as_dict(self) -> dict[str, object]:
        """Return the figures by name."""
        return asdict(self)


def measure() -> LearningFigures:
    """Measure LeNet at 12 batches of 32, ResNet-18 at 25, a transformer's adapters at 6. Takes six minutes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = {
            "lenet": _compare(trained_lenet(20), "lenet"),
            "resnet18": _compare(trained_resnet18(5), "resnet18"),
        }
        others = {"lenet_lean": _lean(trained_lenet(20)), "lora": lora.overhead()}
    finally:
        torch.set_num_threads(threads)
    whole, parts = ({name: pair[i] for name, pair in found.items()} for i in (0, 1))
    return LearningFigures({**whole, **others}, parts, lora.footprint())  # type: ignore[dict-item, arg-type]


def _learner(model: nn.Module, name: str, update: Update) -> Learner:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(32 * BATCHES[name], 3, 32, 32, generator=generator)
    targets = torch.randint(10, (len(inputs),), generator=generator)
    return Learner(Task(deepcopy(model), (inputs, targets)), update, TrainingOptions(lr=1e-5))


def _lean(model: nn.Module) -> float:
    """Return the time of an event of PushCen lean over plain training, for a LeNet."""
    pairs, ratios = [], []
    for _ in range(PAIRS["lenet"]):
        pairs.append([_learner(model, "lenet", update) for update in (PushCenLean().update(), Update())])
        ours, plain = pairs[-1]
        towards = []
        for _ in range(3):
            towards.append(ours.update.offer(ours.model))
            ours.step(Work(1, []), encode=False)
        work = Work(1, [Model(1, 0, ours.encode(towards))] * _MESSAGES, towards=towards, gives=1)
        ratios.append(
            time_ratio(partial(ours.step, work), partial(plain.step, Work(1, []), encode=False), turns=TURNS["lenet"])
        )
    return statistics.median(ratios)


def _compare(model: nn.Module, name: str) -> tuple[float, dict[str, float]]:
    learner = partial(_learner, model, name)

    def training() -> None:
        plain.step(Work(1, []), encode=False)

    pairs, ratios = [], []
    for _ in range(PAIRS[name]):  # all kept, so that each lies elsewhere in memory: that alone makes some percents
        pairs.append((learner(CentroidUpdate()), learner(Update())))
        ours, plain = pairs[-1]
        work = Work(1, [Model(1, 0, ours.encode())] * _MESSAGES)
        ratios.append(time_ratio(partial(ours.step, work), training, turns=TURNS[name]))
    update = ours.update
    update.start(ours.model)
    plainly, merge, start, step, plain_step, encode = best_seconds(
        training,
        lambda: ours._merge(work),
        lambda: update.start(ours.model),
        _stepping(ours),
        _stepping(plain),
        ours.encode,
        turns=2 * TURNS[name],
    )
    every = max(step - plain_step, 0) * plain.steps
    parts = {"merge": merge, "first clustering": start, "every step": every, "encode": encode}
    return statistics.median(ratios), {part: seconds / plainly for part, seconds in parts.items()}


def _stepping(learner: Learner) -> Callable[[], None]:
    """Return what makes an optimiser's step, with all around it, on gradients that are there again each time."""
    parameters = learner.frozen.trained
    gradients = [torch.zeros_like(one) for one in parameters]
    optimiser = EventOptimiser(learner._optimiser, learner.update, parameters, learner.training)

    def step() -> None:
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimiser.step()

    return step
