"""Print where the memory of the bench's 50 clients with adapters is, for docs/learning.md.

`python scripts/measure_memory.py` takes some minutes, and needs Linux.
"""

import ctypes
import gc
import multiprocessing
import tracemalloc
from typing import Any

import torch

from pushcen.bench import lora
from pushcen.learning import CentroidUpdate, Learner, TrainingOptions, Work
from pushcen.simulation import Quiet

_SOME = 10_000
_WORKERS = 2  # as the measurement has them


class Objects(Quiet):
    """Notes how much Python's objects take when a run ends: those of messages, and all others."""

    def ended(self, summary: dict[str, Any]) -> None:  # noqa: ARG002
        """Look."""
        gc.collect()
        found = tracemalloc.take_snapshot().statistics("filename")
        messages = sum(one.size for one in found if one.traceback[0].filename.endswith("codec/payload.py"))
        self.found = sum(one.size for one in found) - messages, messages


def objects() -> tuple[int, int]:
    """Return the bytes of all clients' Python objects, and of messages that wait."""
    lora._simulate(4, Quiet(), hidden=64, layers=1)
    tracemalloc.start()
    lora._simulate(lora.CLIENTS, noted := Objects())
    return noted.found


def working() -> int:
    """Return what one compute event uses and leaves to the next: activations, gradients, what it could go back to."""
    torch.set_num_threads(1)
    learner = Learner(lora._task(0, 1, samples=1), CentroidUpdate(), TrainingOptions())
    for _ in range(2):
        learner.attempt(Work(1, []))
    return _released()


def tensors() -> tuple[int, int]:
    """Return what a parameter, and another tensor, take beside their numbers and their Python objects."""
    found = []
    for make in (lambda: torch.nn.Parameter(torch.zeros(1)), lambda: torch.zeros(1)):
        _released()
        before = lora._memory_of("VmRSS")
        kept = [make() for _ in range(_SOME)]
        found.append((lora._memory_of("VmRSS") - before) // _SOME - kept[0].__sizeof__() - 8)
    return found[0], found[1]


def _released() -> int:
    """Return how much freed memory the process gives back when it is told to."""
    before = lora._memory_of("VmRSS")
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    return before - lora._memory_of("VmRSS")


def measured(function: Any) -> Any:
    """Return what a function measures in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function)


def main() -> None:
    """Print the table."""
    model = lora.LoraTransformer()
    parameters = list(model.parameters())
    trained = [one for one in parameters if one.requires_grad]
    adapters, backbone = (
        sum(one.nbytes for one in trained),
        sum(one.nbytes for one in parameters if one not in set(trained)),
    )
    (python, messages), (parameter, other) = measured(objects), measured(tensors)
    must = backbone + 3 * lora.CLIENTS * adapters
    rows = {
        "the backbone, once": backbone,
        "adapters with Adam's state": 3 * lora.CLIENTS * adapters,
        "what rounding took off the last message": lora.CLIENTS * adapters,
        "Python's objects: modules, parameters, dicts": python,
        "tensors beside their numbers, in C++": lora.CLIENTS * (parameter * len(parameters) + other * 3 * len(trained)),
        "messages that wait": messages,
        f"working memory of {_WORKERS} threads": _WORKERS * measured(working),
    }
    rest, peak = (int(share * must) for share in measured(lora._memory))
    rows["all else: space between blocks, libraries"] = peak - sum(rows.values())
    for name, size in {**rows, "in all, at the peak": peak, "in all, after an evaluation": rest}.items():
        print(f"| {name} | {size / lora.CLIENTS / 1e6:.2f} | {size / 1e6:.1f} | {size / must:.3f} |")


if __name__ == "__main__":
    main()
