"""A LeNet on real images, alone and with PushCen's regulariser and mask: slow, and where CIFAR-10 is at hand."""

import pytest
import torch

from pushcen.data import load
from pushcen.data.sources import cached
from pushcen.learning import Learner, Task, TrainingOptions, Work
from pushcen.methods import method_named
from pushcen.models import LeNet

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cifar10():
    path = cached("cifar10")
    if path is None or not path.exists():
        pytest.skip("cifar10 is not in the cache folder")
    return load("cifar10", path=path)


@pytest.mark.parametrize("method", ["independent", "pushcen"])
def test_a_lenet_alone_learns_cifar10(cifar10, method):
    """Four epochs of 10,000 images; guessing would be 10 %."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = LeNet()
    train = cifar10.inputs[:10_000], cifar10.labels[:10_000]
    test = cifar10.test_inputs[:2000], cifar10.test_labels[:2000]
    options = {"scale": "mean"} if method == "pushcen" else {}
    learner = Learner(Task(model, train, test), method_named(method)(**options).update(), TrainingOptions(), seed=0)
    for _ in range(4):
        learner.step(Work(1, []), encode=False)
    assert learner.evaluate().metric > 0.5
