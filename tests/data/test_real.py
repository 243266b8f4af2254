"""The real data sets, where this machine has them."""

import pathlib
import tarfile

import numpy as np
import pytest

from pushcen.data import Dirichlet, count, load, split
from pushcen.data.data import Scale
from pushcen.data.known import KNOWN
from pushcen.data.sources import cached, read

pytestmark = pytest.mark.slow
SHARED = pathlib.Path(__file__).parents[3] / "shared" / "data"
PLACES = {"fashion-mnist": pathlib.Path("/usr/share/datasets/fashion-mnist")}
SHAPES = {
    "cifar10": ((50_000, 3, 32, 32), 10_000),
    "cifar100": ((50_000, 3, 32, 32), None),
    "mnist": ((60_000, 1, 28, 28), 10_000),
    "fashion-mnist": ((60_000, 1, 28, 28), 10_000),
}


def place(name):
    found = next((path for path in (cached(name), PLACES.get(name)) if path and path.exists()), None)
    if found is None:
        pytest.skip(f"{name} is neither in the cache folder nor installed")
    return found


@pytest.mark.parametrize("name", SHAPES)
def test_the_whole_set_loads_and_its_constants_are_its_own(name):
    path = place(name)
    measured, known = Scale.of(read(path).train.inputs), KNOWN[name].scale
    np.testing.assert_allclose(measured.mean, known.mean, atol=6e-5)
    np.testing.assert_allclose(measured.std, known.std, atol=6e-5)
    data = load(name, path=path)
    shape, tests = SHAPES[name]
    assert data.inputs.shape == shape
    assert (None if data.test_labels is None else len(data.test_labels)) == tests
    assert set(data.labels.bincount().tolist()) == {shape[0] // len(data.classes)} or name == "mnist"
    assert data.inputs.mean(dim=(0, 2, 3)).abs().max() < 1e-3


@pytest.mark.parametrize("pool_test", [False, True])
@pytest.mark.parametrize("alpha", [0.1, 0.4, 1.0])
def test_cifar10_among_a_hundred_clients_uses_every_image_once(alpha, pool_test):
    data = load("cifar10", path=place("cifar10"), pool_test=pool_test)
    divided = split(data, 100, Dirichlet(alpha), seed=1)
    rows = np.concatenate([view.rows for client in divided for view in (client.train, client.test)])
    assert np.array_equal(np.sort(rows), np.arange(60_000 if pool_test else 50_000))
    assert count(divided).sum(axis=0).tolist() == [6000 if pool_test else 5000] * 10


def test_the_part_of_tiny_imagenet_at_hand_loads(tmp_path):
    archive = SHARED / "tiny-imagenet-mini.tar"
    if not archive.exists():
        pytest.skip("no tiny-imagenet-mini.tar beside the project")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    folder = tmp_path / "tiny-imagenet-mini"
    data = load("tiny-imagenet", path=folder)
    assert data.inputs.shape == (4000, 3, 64, 64)
    assert data.labels.bincount().tolist() == [100] * 40
    assert data.test_labels.bincount().tolist() == [10] * 40
    assert data.classes[0] == "goldfish"
    measured, known = Scale.of(read(folder).train.inputs), KNOWN["tiny-imagenet"].scale
    np.testing.assert_allclose(measured.mean, known.mean, atol=0.01)  # of 40 of the 200 classes
    np.testing.assert_allclose(measured.std, known.std, atol=0.01)
