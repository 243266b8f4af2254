"""What a run would be, before it is run: who, where, when, how large, how long. Nothing is trained."""

import statistics
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from pushcen.analysis.table import Column, Table
from pushcen.analysis.units import number, size
from pushcen.config import Config
from pushcen.learning import Learner, TaskFunction, build_task
from pushcen.learning.samples import count
from pushcen.streams import stream

_AT_MOST = 200  # clients that are looked at; of more, so many evenly spread ones stand for all


def plan(config: Config, task: TaskFunction | None = None) -> Table:
    """Describe the world of a config."""
    return Table(
        f"{config.task_name}, {config.method_name}: a dry run",
        [Column("", left=True), Column("", left=True)],
        [list(line) for line in _lines(config, task or config.task_function())],
    )


def _lines(config: Config, function: TaskFunction) -> Iterator[tuple[str, str]]:
    looked = range(0, config.clients, -(-config.clients // _AT_MOST))
    first: Learner | None = None
    samples: list[int] = []
    tests: list[int] = []
    for client in looked:
        task = build_task(function, client, config.clients, config.seed)
        if first is None:
            first = Learner(task, config.method.update(), config.training, client=f"client {client}")
        samples.append(count(task.train))
        tests.append(count(task.test) if task.test is not None else 0)
    assert first is not None
    joins = config.participation.join_times(config.clients, config.seed)
    yield "task", config.task.function or f"{config.data.source}, {config.data.partition}, {config.images().model}"
    yield "method", f"{config.method_name}: {_options(config.method)}"
    yield "clients", f"{config.clients:,}, seed {config.seed}"
    yield "training samples", f"{_range(samples)} a client; for testing {_range(tests)}"
    late = ", ".join(f"{client} at {time:.1f}" for client, time in sorted(joins.items(), key=lambda j: j[1])[:8])
    yield "join late", f"{len(joins)}: {late}{', ...' if len(joins) > 8 else ''}" if joins else "nobody"
    yield "participation", _options(config.participation)
    yield "neighbours", _options(config.neighbours)
    yield "network", _options(config.network)
    steps = [config.training.steps(one) for one in samples]
    paces = [config.compute.pace(c, s, config.seed) for c, s in zip(looked, steps, strict=True)]
    yield "compute event", f"{_range(steps)} steps, pseudo-time {_range(paces)}"
    scale = config.clients / len(paces)
    spans = [max(0.0, config.horizon - joins.get(client, 0.0)) for client in looked]
    events = scale * sum(int(span / pace) for span, pace in zip(spans, paces, strict=True))
    trained = scale * sum(int(span / pace) * s for span, pace, s in zip(spans, paces, steps, strict=True))
    yield "horizon", f"{config.horizon:g}: about {events:,.0f} compute events, {trained:,.0f} training steps"
    weights = sum(tensor.numel() * tensor.element_size() for tensor in first.model.state_dict().values())
    yield "model", f"{sum(p.numel() for p in first.model.parameters()):,} parameters, {size(weights)}"
    sizes, receivers = first.sizes(), _receivers(config)
    push = sum(sizes.values()) * receivers
    each = size(max(sizes.values())) if receivers else "nothing"
    yield "a message", f"{each}{f', in {len(sizes)} parts' if len(sizes) > 1 else ''}"
    yield "a push", f"{size(push)} to {number(receivers)} receivers{' each' if len(sizes) > 1 else ''}"
    yield "sent in all", f"about {size(events * push)}"
    momenta = {"adam": 2, "adamw": 2, "sgd": int(config.training.momentum > 0)}[config.training.optimiser]
    waiting = min(getattr(config.method, "limit", 0) or config.clients, config.clients) * sum(sizes.values())
    memory = config.clients * (weights * (1 + momenta) + (waiting if receivers else 0))
    yield "memory", f"about {size(memory)} for models, optimisers and full mailboxes, beside the data"
    yield "executor", f"{config.executor.kind}, {config.executor.size} workers"


def _receivers(config: Config) -> float:
    names = [str(client) for client in range(config.clients)]
    edges = config.neighbours.edges(names, stream(config.seed, "graph"))
    drawn = getattr(config.method, "receivers", None)
    if edges is not None and (config.method.needs_graph or drawn is not None):
        degree = statistics.fmean(len(to) for to in edges.values())
        return degree if drawn is None else min(degree, drawn)
    return min(drawn or 0, config.clients - 1)


def _options(section: Any) -> str:
    """Show what differs from the defaults, and always the kind."""
    changed = [
        f"{field.name} {getattr(section, field.name)}"
        for field in fields(section)
        if field.name == "kind" or getattr(section, field.name) != field.default
    ]
    return ", ".join(changed) or "as usual"


def _range(values: list[Any]) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return number(low) if low == high else f"{number(low)} to {number(high)} (median {number(middle)})"
