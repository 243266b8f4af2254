"""What fine-tuning with adapters costs: a compute event, a push, and the memory of many clients over one backbone."""

import multiprocessing
import statistics
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pushcen.bench.common import time_ratio
from pushcen.learning import CentroidUpdate, Learner, Model, Task, TrainingOptions, Update, Work
from pushcen.methods import PushCen
from pushcen.simulation import ComputeOptions, EvaluationOptions, ExecutorOptions, Quiet, World, simulate_world

HIDDEN, RANK, LAYERS, WORDS, LENGTH = 512, 8, 8, 1000, 16
BATCHES, PAIRS, TURNS = 6, 3, 4
TIMED_LAYERS = 2  # each costs the same
CLIENTS = 50
_MESSAGES = 10


class Lora(nn.Module):
    """A linear layer that does not train, and beside it two narrow ones that do, the second of which starts at zero.

    >>> layer = Lora(nn.Linear(64, 32), rank=4)
    >>> [(name, list(one.shape)) for name, one in layer.named_parameters() if one.requires_grad]
    [('lora_A.weight', [4, 64]), ('lora_B.weight', [32, 4])]
    """

    def __init__(self, base: nn.Linear, rank: int = RANK, scale: float = 2.0) -> None:
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), scale
        self.lora_A = nn.Linear(base.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what the layer gives, with what the adapter adds."""
        y: torch.Tensor = self.base(x) + self.scale * self.lora_B(self.lora_A(x))
        return y


class LoraBlock(nn.Module):
    """A transformer's layer, with adapters of the queries and values."""

    def __init__(self, hidden: int, heads: int, rank: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.key, self.out = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.wide, self.narrow = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
        self.requires_grad_(False)
        self.query, self.value = (Lora(nn.Linear(hidden, hidden), rank) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sequences, each of which has looked at itself."""
        y: torch.Tensor = self.norm1(x)
        parts = [part(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)]
        seen = nn.functional.scaled_dot_product_attention(*parts)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        y = x + self.narrow(nn.functional.gelu(self.wide(self.norm2(x))))
        return y


class LoraTransformer(nn.Module):
    """A small transformer that classifies texts: its adapters and its last layer train.

    >>> LoraTransformer(hidden=32, layers=1, words=10)(torch.zeros(2, 5, dtype=torch.long)).shape
    torch.Size([2, 4])
    """

    def __init__(
        self, hidden: int = HIDDEN, layers: int = LAYERS, words: int = WORDS, rank: int = RANK, classes: int = 4
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, hidden), nn.Embedding(64, hidden)
        self.requires_grad_(False)
        self.blocks = nn.Sequential(*(LoraBlock(hidden, max(1, hidden // 64), rank) for _ in range(layers)))
        self.head = nn.Linear(hidden, classes)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Return a score for each class."""
        x = self.words(words) + self.places(torch.arange(words.shape[1], device=words.device))
        scores: torch.Tensor = self.head(self.blocks(x).mean(1))
        return scores


def overhead() -> float:
    """Return the time of a compute event (10 messages merged) over plain training of the same adapters."""
    pairs, ratios = [], []
    for _ in range(PAIRS):
        pairs.append([_learner(update) for update in (CentroidUpdate(), Update())])
        ours, plain = pairs[-1]
        ours.step(Work(1, []), encode=False)  # what trains is not zero any more
        work = Work(1, [Model(1, 0, ours.encode())] * _MESSAGES)
        training = partial(plain.step, Work(1, []), encode=False)
        ratios.append(time_ratio(partial(ours.step, work), training, turns=TURNS))
    return statistics.median(ratios)


def footprint() -> dict[str, float]:
    """Return the bytes of a push over those of what trains, and the memory of many clients over what it must hold.

    That is one backbone, and all adapters with Adam's state: after the last evaluation, and at the peak, in training.
    """
    learner = _learner(CentroidUpdate())
    trained = sum(parameter.nbytes for parameter in learner.frozen.trained)
    with multiprocessing.get_context("spawn").Pool(1) as pool:  # whose memory holds nothing else
        held, peak = pool.apply(_memory)
    name = f"memory_{CLIENTS}_clients"
    return {"bytes_vs_trained": round(learner.sizes()[0] / trained, 4), name: held, f"{name}_peak": peak}


def _task(client: int, _: int, samples: int = 32 * BATCHES, **sizes: int) -> Task:
    draw = torch.Generator().manual_seed(client)
    words = torch.randint(WORDS, (samples, LENGTH), generator=draw)
    return Task(LoraTransformer(**sizes), (words, words[:, 0] % 4))


def _learner(update: Update) -> Learner:
    return Learner(_task(0, 1, layers=TIMED_LAYERS), update, TrainingOptions(lr=1e-3))


class _Memory(Quiet):
    """Notes how much memory the process has when a run ends, with all its clients."""

    def ended(self, summary: dict[str, Any]) -> None:  # noqa: ARG002
        """Look."""
        self.held, self.peak = _memory_of("VmRSS"), _memory_of("VmHWM")


def _memory() -> tuple[float, float]:
    """Simulate the clients for two events each; return the memory they take over what it must hold: now, and peak."""
    _simulate(4, _Memory(), hidden=64, layers=1)  # warm up: everything is loaded and compiled
    before, noted = _memory_of("VmRSS"), _Memory()
    _simulate(CLIENTS, noted)
    model = LoraTransformer()
    trained, all_bytes = (
        sum(one.nbytes for one in model.parameters() if one.requires_grad or every) for every in (False, True)
    )
    must = all_bytes - trained + 3 * CLIENTS * trained
    return round((noted.held - before) / must, 3), round((noted.peak - before) / must, 3)


def _memory_of(key: str) -> int:
    """Return how much memory this process has, or has had at most; the system's own peak counts its parent's, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(key)))


def _simulate(clients: int, observer: Quiet, **sizes: int) -> None:
    world = World(
        PushCen(receivers=2),
        TrainingOptions(),
        clients=clients,
        horizon=2.5,
        compute=ComputeOptions("constant"),
        evaluation=EvaluationOptions(every=2.5),
        executor=ExecutorOptions(workers=2),
    )
    task = partial(_task, samples=1, **sizes)  # little memory for the training itself
    simulate_world(world, task, observer=observer)
