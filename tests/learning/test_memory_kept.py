"""Training asks the system for memory once, not at every step."""

import os
import subprocess
import sys

import pytest

from pushcen.memory import keep_freed_memory

STORY = """
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


def faults(**variables):
    """How many pages a training step asks for, in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    environment |= {"OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run([sys.executable, "-c", STORY], env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not keep_freed_memory(), reason="not on glibc, or MALLOC_... is set")
def test_a_step_takes_no_new_pages():
    usual = faults(MALLOC_TRIM_THRESHOLD_=str(128 << 10))  # the user's own setting is left alone
    assert usual > 500
    assert faults() < usual / 10
