"""What a run would be, before it is run: who, when, how large, how long. Nothing is trained."""

import statistics
from dataclasses import dataclass, replace

from pushcen.config import Config
from pushcen.learning import Learner, TaskFunction, TrainingOptions, build_task, sparse
from pushcen.learning.held_out import held_count
from pushcen.learning.loaders import batch_size
from pushcen.learning.samples import count
from pushcen.simulation.options.clients import client_training
from pushcen.streams import stream

_AT_MOST = 200  # clients that are looked at; of more, so many evenly spread ones stand for all


@dataclass(frozen=True)
class Forecast:
    """The numbers of a run that has not begun. Lists have an entry for each client that was looked at."""

    config: Config
    samples: list[int]
    """Training samples."""
    tests: list[int]
    """Test samples."""
    steps: list[int]
    """Optimiser steps of a compute event."""
    paces: list[float]
    """Pseudo-time of a compute event."""
    joins: dict[int, float]
    """The clients that join late, and when."""
    online: list[float]
    """The share of its time that each is there, as a trace says."""
    rates: list[float]
    """Bytes per unit of time that leave each, as drawn once; infinite: no limit."""
    events: float
    """Compute events of all clients together, about."""
    training_steps: float
    """Their optimiser steps."""
    parameters: int
    model_bytes: int
    messages: list[int]
    """Bytes of a message; of each of its parts, where a model is sent in parts. A mean, where they change over time."""
    receivers: float
    """To how many others a push goes, or each of its parts; a mean."""
    memory: float
    """Bytes of all models, optimisers and full mailboxes, about; what is frozen counts once."""

    @property
    def push_bytes(self) -> float:
        """Bytes of a push, to all its receivers."""
        return sum(self.messages) * self.receivers


def forecast(config: Config, task: TaskFunction | None = None) -> Forecast:
    """Return what a run of this config would be.

    >>> from pushcen.config import load_config
    >>> small = forecast(load_config("digits", {"clients": 4, "horizon": 1.0}))
    >>> small.parameters, small.receivers, sum(small.samples) + sum(small.tests)
    (38282, 3, 1797)
    """
    looked = range(0, config.clients, -(-config.clients // _AT_MOST))
    first, samples, tests, steps = _clients(config, task or config.task_function(), looked)
    joins = config.participation.join_times(config.clients, config.seed)
    factors = config.compute.factors(config.clients, config.seed)
    paces = [config.compute.pace(at, s, config.seed) * factors[at] for at, s in zip(looked, steps, strict=True)]
    trace, lines = config.availability(), config.lines()
    online = [trace[client].share if trace else 1.0 for client in looked]
    spans = [max(0.0, config.horizon - joins.get(client, 0.0)) * online[at] for at, client in enumerate(looked)]
    slowest = max(paces) if config.method.rounds else 0.0  # at whose pace all go, if they wait for each other
    events = [int(span / max(pace, slowest)) for span, pace in zip(spans, paces, strict=True)]
    scale = config.clients / len(looked)
    model_bytes = sum(tensor.numel() * tensor.element_size() for tensor in first.model.state_dict().values())
    own_bytes = sum(tensor.nbytes for tensor in first.frozen.without_fixed(first.model.state_dict()).values())
    messages, receivers = list(first.sizes().values()), _receivers(config)
    if config.sparsity.given and any(events):
        messages = [_mean_message(config, first, events)]
    return Forecast(
        config,
        samples,
        tests,
        steps,
        paces,
        joins,
        online,
        [lines.up(client, stream(config.seed, "forecast", client)) for client in looked],
        events=scale * sum(events),
        training_steps=scale * sum(count * s for count, s in zip(events, steps, strict=True)),
        parameters=sum(parameter.numel() for parameter in first.model.parameters()),
        model_bytes=model_bytes,
        messages=messages,
        receivers=receivers,
        memory=model_bytes
        - own_bytes
        + config.clients * _client_memory(config, own_bytes, sum(messages) if receivers else 0),
    )


def _clients(config: Config, function: TaskFunction, looked: range) -> tuple[Learner, list[int], list[int], list[int]]:
    """Build the tasks of some clients; return the first one's learner, and the samples, tests and steps of each."""
    learner: Learner | None = None
    samples, tests, steps = [], [], []
    for client in looked:
        task = build_task(function, client, config.clients, config.seed)
        if learner is None:
            update = sparse(config.method.update(), config.sparsity, config.method_name)
            learner = Learner(task, update, _training(config, client), client=f"client {client}")
        known = count(task.train)
        samples.append(known - held_count(known, config.neighbours.held_out))
        training = _training(config, client)
        batch = batch_size(task.train, training.batch, TrainingOptions().batch)
        steps.append(replace(training, batch=batch).steps(samples[-1]))
        tests.append(count(task.test) if task.test is not None else 0)
    assert learner is not None
    return learner, samples, tests, steps


def _mean_message(config: Config, learner: Learner, events: list[int]) -> int:
    """Return the mean bytes of all messages, each as long as the sparsity says, where clients have so many events."""
    changing = range(1, min(config.sparsity.over, max(events)) + 1)
    first = [config.sparsity.message_bytes(learner.schema, event) for event in changing]
    total = sum(sum(first[:count]) + max(count - len(first), 0) * first[-1] for count in events)
    return round(total / sum(events))


def _training(config: Config, client: int) -> TrainingOptions:
    return client_training(config.training, client, config.seed)


def _receivers(config: Config) -> float:
    graph = config.timed_graph()
    drawn = getattr(config.method, "receivers", None)
    if graph is not None and (config.method.needs_graph or drawn is not None):
        degree = statistics.fmean(len(to) for to in graph.at(0.0).values())
        return degree * getattr(config.method, "chance", 1.0) if drawn is None else min(degree, drawn)
    return min(drawn or 0, config.clients - 1)


def _client_memory(config: Config, model: int, message: int) -> int:
    waiting = min(getattr(config.method, "limit", 0) or config.clients, config.clients)
    waiting = 0 if config.method.exchanges else waiting
    return model * (1 + config.training.memory_factor) + waiting * message
