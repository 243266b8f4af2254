"""Training asks the system for memory once, not at every step."""

import os
import subprocess
import sys

import pytest
import torch

from pushcen.learning import CentroidUpdate, Learner, Task, TrainingOptions, Work
from pushcen.memory import keep_freed_memory, zeros_apart

STEPS = """
import resource, torch
from pushcen.learning import Learner, Task, TrainingOptions, Work

model = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 5), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(25088, 10))
data = torch.randn(64, 3, 32, 32), torch.randint(10, (64,))
learner = Learner(Task(model, data), training=TrainingOptions(epochs=4))
for _ in range(3):
    learner.step(Work(own=1, models=[]))
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
learner.step(Work(own=1, models=[]))
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // learner.steps)
"""


BUILDING = """
import pathlib, threading, torch
from pushcen.memory import give_back_freed_blocks, keep_freed_memory

def held():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS")))

def build():
    torch.ones(1 << 18)  # from here on the thread has a reserve of its own
    before = held()
    with give_back_freed_blocks():
        blocks = [torch.ones(1 << 20) for _ in range(10)]
        del blocks
    print(held() - before)

keep_freed_memory()
thread = threading.Thread(target=build)
thread.start()
thread.join()
"""

KEEPING = """
import pathlib, torch
from pushcen.memory import give_back_free_pages, keep_freed_memory

def held():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS")))

keep_freed_memory()
kept, freed = zip(*((torch.ones(1 << 10), torch.ones(1 << 18)) for _ in range(40)))  # 1 MB each, with something between
del freed
before = held()
give_back_free_pages()
print(before - held())
"""


def told(story, **variables):
    """What a story prints, in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    environment |= {"OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run([sys.executable, "-c", story], env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not keep_freed_memory(), reason="not on glibc, or MALLOC_... is set")
def test_a_step_takes_no_new_pages():
    usual = told(STEPS, MALLOC_TRIM_THRESHOLD_=str(128 << 10))  # the user's own setting is left alone
    assert usual > 500
    assert told(STEPS) < usual / 10


@pytest.mark.skipif(not keep_freed_memory(), reason="not on glibc, or MALLOC_... is set")
def test_what_is_freed_for_good_goes_back_to_the_system_from_a_threads_reserve_too():
    assert told(BUILDING) < 8_000  # of 40,960 kB


@pytest.mark.skipif(not keep_freed_memory(), reason="not on glibc, or MALLOC_... is set")
def test_pages_in_which_nothing_is_in_use_go_back_when_they_are_asked_for():
    assert told(KEEPING) > 30_000  # of 40,960 kB


@pytest.mark.skipif(not keep_freed_memory(), reason="not on glibc, or MALLOC_... is set")
@pytest.mark.parametrize("optimiser", ["adam", "sgd", "adadelta"])
def test_what_an_optimiser_remembers_is_moved_into_one_block_once(optimiser):
    def blocks(learner):
        memories = learner._optimiser.state.values()
        large = [value for memory in memories for value in memory.values() if value.numel() > 1]
        return {one.untyped_storage().data_ptr() for one in large}

    layers = torch.nn.Linear(100, 50), torch.nn.ReLU(), torch.nn.Linear(50, 2)
    task = Task(torch.nn.Sequential(*layers), (torch.randn(64, 100), torch.randint(2, (64,))))
    momentum = 0.9 if optimiser == "sgd" else 0.0
    learner = Learner(task, CentroidUpdate(), TrainingOptions(optimiser=optimiser, momentum=momentum))
    learner.step(Work(1, []))
    first = blocks(learner)
    learner.step(Work(1, []))
    assert len(first) == 1
    assert blocks(learner) == first


@pytest.mark.skipif(not keep_freed_memory(), reason="not on glibc, or MALLOC_... is set")
def test_where_the_system_has_no_more_blocks_apart_any_memory_will_do(monkeypatch):
    def refuse(*_):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr("pushcen.memory.mmap.mmap", refuse)
    assert torch.equal(zeros_apart(2000, torch.device("cpu")), torch.zeros(2000))


READING_FIRST = """
import resource, torch
from pushcen.memory import zeros_apart

row = zeros_apart(1 << 20, torch.device("cpu"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
row.add_(1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not keep_freed_memory(), reason="not on glibc, or MALLOC_... is set")
def test_zeros_apart_are_in_memory_when_they_are_first_added_to():
    # of 1,024 pages; one that is read before it is written is mapped twice, which interrupts all other threads
    assert told(READING_FIRST) < 100
