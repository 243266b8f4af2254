"""Merging holds one sum, never the messages decoded: the real peak of a process that does nothing else."""

import json
import subprocess
import sys

import pytest

MEASURE = """
import gc, json, pathlib
import torch
torch.set_num_threads(1)
from pushcen.codec import decode
from pushcen.learning import Learner, Model, Task, Work
from pushcen.methods import method_named
from pushcen.models import resnet18

def status(key):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(key)))

def peak(work):
    "How far memory rises above where it is while `work` runs."
    gc.collect()
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = status("VmRSS")
    work()
    return status("VmHWM") - before

def learner(model):
    data = torch.zeros(4, 3, 32, 32), torch.zeros(4).long()
    return Learner(Task(model, data), method_named(method)().update())

def folded(one, payloads):
    for _ in range(16):
        one.fold(5, 0, payloads)
    one.take()
    one._merge(Work(3, []))

def merged(one, payloads):
    one._merge(Work(3, [Model(5 + i, 0, payloads) for i in range(16)]))

def all_decoded(one, payloads):
    models = [decode(payloads[0]) for _ in range(16)]
    return {name: sum(model[name] for model in models) / 16 for name in models[0]}

extra = {}
for method, ways in (("push-sum", [merged]), ("pushcen", [merged, folded, all_decoded])):
    small = learner(torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.Linear(7200, 4)))
    one = learner(resnet18(10))
    for work in ways:
        work(small, small.encode())  # compile the kernels, fill the caches
        payloads = one.encode()
        extra[f"{method}, {work.__name__}"] = peak(lambda: work(one, payloads)) / (4 * one.schema.size)
print(json.dumps(extra))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_merging_16_messages_into_a_resnet18_holds_less_than_two_extra_models():
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for way, extra in json.loads(done.stdout).items():
        if way.endswith("all_decoded"):
            assert extra > 10, "the measure sees what it should see"
        else:
            assert extra < 2, way
