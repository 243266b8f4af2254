"""The models: sizes, names, and that the default one learns the default data."""

import torch

from pushcen.data import Iid, load, split
from pushcen.learning import Learner, Task, TrainingOptions, Work, build_task
from pushcen.models import LeNet, SmallCNN, resnet18


def parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


def test_parameter_counts():
    assert parameters(LeNet(10)) == 256_830
    assert parameters(resnet18(1000)) == 11_689_512
    assert parameters(resnet18(100)) == 11_227_812


def test_resnet18_has_torchvisions_names():
    names = list(resnet18(1000).state_dict())
    assert len(names) == 122
    assert names[0] == "conv1.weight"
    assert names[-2:] == ["fc.weight", "fc.bias"]
    assert {"layer2.0.downsample.0.weight", "layer2.0.downsample.1.running_var", "bn1.num_batches_tracked"} < set(names)


def test_lenet_computes_what_the_paper_describes():
    model, images = LeNet(10), torch.randn(4, 3, 32, 32)
    pool = torch.nn.functional.max_pool2d
    x = pool(model.conv1(images).relu(), 2)
    x = pool(model.conv2(x).relu(), 2).flatten(1)
    expected = model.fc3(model.fc2(model.fc1(x).relu()).relu())
    torch.testing.assert_close(model(images), expected)


def test_the_small_network_learns_digits():
    divided = split(load("digits"), 1, Iid(), seed=0)
    task = build_task(lambda client, _: Task(SmallCNN(), divided[client].train, divided[client].test), 0, 1)
    learner = Learner(task, training=TrainingOptions(epochs=4))
    learner.step(Work(1, []))
    assert learner.evaluate().metric > 0.9
