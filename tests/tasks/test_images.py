"""Images from files: peers whose images became inputs in another way are told so when they meet."""

import numpy as np
import pytest
from PIL import Image

from pushcen.config import Config
from pushcen.errors import ConfigError
from pushcen.learning import Learner, TrainingOptions
from pushcen.methods import PushCen
from pushcen.runtime.fingerprint import describe, difference


def about(source, **options):
    """What a peer with these images says of itself."""
    plain = {"data": {"source": str(source), "partition": "iid", **options}, "task": {"model": "resnet18"}}
    learner = Learner(Config.of(plain).task_function()(0, 1), PushCen().update())
    return describe(PushCen(), TrainingOptions(), learner, 0)


@pytest.fixture
def site(tmp_path):
    """Makes a folder of images as bright as is said."""

    def make(name, brightness):
        for kind in ("cat", "dog"):
            (tmp_path / name / kind).mkdir(parents=True)
            for at in range(4):
                pixels = np.full((8, 8, 3), brightness + at, np.uint8)
                Image.fromarray(pixels).save(tmp_path / name / kind / f"{at}.png")
        return tmp_path / name

    return make


def test_sites_whose_images_are_normalised_or_resized_otherwise_are_told_apart(site):
    dark, light = site("dark", 20), site("light", 200)
    assert difference(about(dark), about(light)).startswith("task.scale = 0.790196,0.790196,0.790196/0.00438")
    same = {"scale": "0.5,0.5,0.5/0.2,0.2,0.2"}
    assert difference(about(dark, **same), about(light, **same)) == ""
    assert difference(about(dark, **same), about(light, **same, size=16)) == "task.size = 16 there, missing here"


def test_the_scale_that_another_peer_tells_makes_images_alike(site):
    dark, light = site("dark", 20), site("light", 200)
    theirs = about(light)
    assert about(dark, scale=theirs["task.scale"])["task.scale"] == theirs["task.scale"]


def test_data_that_all_know_by_name_need_no_word_of_it():
    plain = {"task": {"model": "cnn"}, "data": {"source": "digits"}}
    assert Config.of(plain).task_function()(0, 1).about == {}


def test_a_scale_of_other_channels_is_refused(site):
    with pytest.raises(Exception, match="has 3 channels or columns, but scale has 1"):
        about(site("dark", 20), scale="0.5/0.2")
    with pytest.raises(ConfigError, match=r"data\.scale = 'x': must be means"):
        Config.of({"data": {"scale": "x"}})
