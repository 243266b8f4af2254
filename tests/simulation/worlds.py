"""Small worlds for tests: a linear model on a few numbers, trained in well under a millisecond."""

import torch

from pushcen.learning import Task, TrainingOptions
from pushcen.methods import PushCen
from pushcen.simulation import ExecutorOptions, World, simulate_world


def task(client, clients):
    draw = torch.Generator().manual_seed(1000 + client)
    inputs = torch.randn(72 + 16 * (client % 3), 6, generator=draw)
    targets = (inputs @ torch.linspace(-1, 1, 6) + 0.3 * torch.randn(len(inputs), generator=draw) > 0).long()
    cut = len(inputs) - 24
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    return Task(model, (inputs[:cut], targets[:cut]), (inputs[cut:], targets[cut:]))


def norm_task(client, clients):
    """The same with a BatchNorm, which stays at home."""
    plain = task(client, clients)
    plain.model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2))
    return plain


def global_test():
    draw = torch.Generator().manual_seed(7)
    inputs = torch.randn(200, 6, generator=draw)
    return inputs, (inputs @ torch.linspace(-1, 1, 6) > 0).long()


def world(method=None, workers=2, **sections):
    method = method or PushCen(clusters=4, receivers=3, limit=4)
    sections = {"clients": 8, "seed": 3, "horizon": 6.0} | sections
    sections.setdefault("executor", ExecutorOptions(workers=workers, ahead=4))
    return World(method, sections.pop("training", TrainingOptions(batch=16, lr=1e-2)), **sections)


def run(folder=None, function=task, *, resume=False, observer=None, strict=False, **options):
    return simulate_world(
        world(**options), function, folder, observer, resume=resume, global_test=global_test, strict=strict
    )


def plain(summary):
    """All of a summary but the times."""
    return {name: value for name, value in summary.items() if name != "times"}
