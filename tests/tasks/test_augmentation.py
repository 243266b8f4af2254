"""Augmentation: on training batches only, from the client's own stream, the same for any workers and after a resume."""

import pytest
import torch

from pushcen.config import load_config
from pushcen.errors import ConfigError
from pushcen.learning import Learner, Work, build_task
from pushcen.runs import launch
from pushcen.simulation.meters.gradient import gradient
from pushcen.tasks import DataOptions, ImageTask
from pushcen.tasks.augmentation import crop, flip

BOTH = {"data.augment": "flip,crop", "clients": 4, "horizon": 1.0, "participation.delayed": 0.0}


def test_a_flip_mirrors_about_half_of_the_images_and_nothing_else():
    images = torch.arange(9.0).reshape(1, 1, 3, 3).expand(400, 1, 3, 3)
    flipped = flip(images)
    mirrored = (flipped == images.flip(-1)).flatten(1).all(1)
    assert 150 < int(mirrored.sum()) < 250
    assert torch.equal(flipped[~mirrored], images[~mirrored])


def test_a_crop_moves_each_image_by_up_to_four_pixels_both_ways():
    images = torch.zeros(5000, 2, 9, 9)
    images[:, 1, 4, 4] = 1.0
    moved = crop(images)
    assert not moved[:, 0].any()
    places = moved[:, 1].flatten(1).argmax(1)
    assert set(places.tolist()) == set(range(81))
    assert torch.equal(moved.sum((1, 2, 3)), torch.ones(5000))


def learner(augment, client=0):
    task = build_task(ImageTask(DataOptions(augment=augment)), client, 20)
    return Learner(task, client=f"client {client}", seed=[0, client])


def weights(learner):
    return torch.cat([tensor.flatten() for tensor in learner.model.state_dict().values()])


def test_training_sees_other_images_and_evaluation_the_same():
    plain, changed = learner(None), learner("flip,crop")
    assert plain.evaluate() == changed.evaluate()
    assert plain.evaluate(plain.task.train) == changed.evaluate(changed.task.train)
    for one in (plain, changed):
        one.step(Work(own=1, models=[]))
    assert not torch.equal(weights(plain), weights(changed))


def test_the_names_of_a_models_tensors_stay_the_same():
    assert list(learner(None).model.state_dict()) == list(learner("crop").model.state_dict())


def test_draws_are_the_clients_own_whatever_else_is_drawn():
    one, other = learner("flip,crop"), learner("flip,crop")
    for at in range(3):
        one.step(Work(own=1, models=[]))
        torch.rand(at + 1)
        other.step(Work(own=1, models=[]))
    assert torch.equal(weights(one), weights(other))


@pytest.mark.parametrize("events", [0, 2])
def test_a_learner_goes_on_bit_for_bit(events):
    one, other = learner("flip,crop"), learner("flip,crop")
    for _ in range(events):
        one.step(Work(own=1, models=[]))
    other.restore(one.save())
    for again in (one, other):
        again.step(Work(own=1, models=[]))
    assert torch.equal(weights(one), weights(other))


def test_the_number_of_workers_changes_no_byte(tmp_path):
    for workers in (1, 2):
        launch(load_config("digits", BOTH | {"executor.workers": workers}), tmp_path / str(workers))
    one, two = ((tmp_path / name / "metrics.jsonl").read_bytes() for name in ("1", "2"))
    assert one == two


def test_the_objective_is_that_of_the_images_as_they_are():
    plain, changed = learner(None), learner("flip,crop")
    assert gradient(plain)[0] == gradient(changed)[0]
    assert torch.equal(gradient(plain)[1], gradient(changed)[1])


@pytest.mark.parametrize("ways", ["turn", "flip,flip", "flip;crop", ","])
def test_another_way_is_refused(ways):
    with pytest.raises(ConfigError, match=r"data.augment = .*: must be flip, crop or flip,crop"):
        load_config("digits", {"data.augment": ways})
