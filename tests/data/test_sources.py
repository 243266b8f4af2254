"""Every source gives the same tensors for the same pixels, and says clearly what it cannot give."""

import os
import subprocess
import sys

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from PIL import Image

from pushcen.data import Data, DataError, OptionError, Scale, check_labels, load
from pushcen.data.known import KNOWN, from_splits
from tests.data import files

PLAIN = Scale((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def pixels(inputs):
    """What PLAIN made of uint8 images, undone."""
    return inputs.mul(255).round().byte().permute(0, 2, 3, 1).numpy()


def samples(labels, images):
    return sorted((int(label), image.tobytes()) for label, image in zip(labels, images, strict=True))


def parquet(path, table):
    pyarrow.parquet.write_table(table, path)
    return path


def encoded(images):
    return [files.png(image) for image in images]


def test_digits_are_normalised_and_need_no_network():
    data = load()
    assert data.name == "digits"
    assert data.inputs.shape == (1797, 1, 8, 8)
    assert data.inputs.dtype == torch.float32
    assert data.labels.dtype == torch.int64
    assert data.inputs.mean().item() == pytest.approx(0, abs=1e-5)
    assert data.inputs.std(unbiased=False).item() == pytest.approx(1, abs=1e-5)
    assert data.test_inputs is None


def as_npz(path):
    return files.npz(path / "a.npz")


def as_folder(path):
    return files.folder(path / "images")


def as_train_folder(path):
    files.folder(path / "images" / "train")
    return path / "images"


def as_parquet_of_bytes(path):
    return parquet(path / "a.parquet", pa.table({"image": encoded(files.images()), "label": files.labels()}))


def as_parquet_of_structs(path):
    structs = [{"bytes": data, "path": None} for data in encoded(files.images())]
    return parquet(path / "a.parquet", pa.table({"img": structs, "fine_label": files.labels()}))


def as_parquet_folder(path):
    (path / "sharded").mkdir()
    for at in range(2):
        half = slice(6 * at, 6 * at + 6)
        table = pa.table({"image": encoded(files.images()[half]), "label": files.labels()[half]})
        parquet(path / "sharded" / f"train-0000{at}.parquet", table)
    return path / "sharded"


@pytest.mark.parametrize(
    "make", [as_npz, as_folder, as_train_folder, as_parquet_of_bytes, as_parquet_of_structs, as_parquet_folder]
)
def test_all_formats_give_the_same_samples(tmp_path, make):
    data = load(make(tmp_path), scale=PLAIN)
    assert samples(data.labels.tolist(), pixels(data.inputs)) == samples(files.labels(), files.images())
    assert data.inputs.is_contiguous()


@pytest.mark.parametrize("zipped", [False, True])
def test_idx_files_are_read_plain_and_zipped(tmp_path, zipped):
    data = load(files.idx(tmp_path, zipped=zipped), scale=Scale((0.0,), (1.0,)))
    np.testing.assert_array_equal(pixels(data.inputs), files.images(channels=1))
    assert data.labels.tolist() == files.labels().tolist()
    assert data.test_inputs.shape == (4, 1, 8, 8)


def test_tiny_imagenets_layout_has_words_for_classes_and_its_validation_set_as_test(tmp_path):
    data = load("tiny-imagenet", path=files.tiny_imagenet(tmp_path))
    assert data.classes == ("goldfish", "n1", "bullfrog")
    assert data.inputs.shape == (12, 3, 8, 8)
    assert data.test_labels.tolist() == [2, 1, 0]


def test_a_grey_image_among_coloured_ones_becomes_rgb_and_grey_ones_alone_stay_grey(tmp_path):
    data = load(files.tiny_imagenet(tmp_path / "some"), scale=PLAIN)
    grey = pixels(data.inputs)[0]
    assert (grey == files.images()[0, ..., :1]).all()
    for at in range(2):
        (tmp_path / "all" / str(at)).mkdir(parents=True)
        Image.fromarray(files.images()[at, ..., 0]).save(tmp_path / "all" / str(at) / "1.png")
    assert load(tmp_path / "all").inputs.shape == (2, 1, 8, 8)


def test_a_train_and_test_folder_are_a_global_test_set(tmp_path):
    files.folder(tmp_path / "train")
    files.folder(tmp_path / "test")
    assert load(tmp_path).test_inputs.shape == (12, 3, 8, 8)
    (tmp_path / "test" / "dog").mkdir()
    with pytest.raises(DataError, match=r"test/dog: a class that .*train has not"):
        load(tmp_path)


def test_a_data_set_of_the_hub_is_converted_with_its_class_names():
    features = datasets.Features({"img": datasets.Image(), "label": datasets.ClassLabel(names=["ant", "bee", "cat"])})
    splits = {
        name: datasets.Dataset.from_dict(
            {"img": [Image.fromarray(image) for image in files.images(count)], "label": files.labels(count)},
            features=features,
        )
        for name, count in (("train", 12), ("valid", 4))
    }
    arrays = from_splits(datasets.DatasetDict(splits), "somebody/something")
    np.testing.assert_array_equal(arrays.train.inputs, files.images())
    assert arrays.train.labels.tolist() == files.labels().tolist()
    assert arrays.test.inputs.shape == (4, 8, 8, 3)
    assert arrays.classes == ("ant", "bee", "cat")


def test_without_the_hub_the_error_says_which_file_would_do(tmp_path):
    program = "import pushcen.data as d\ntry: d.load('mnist')\nexcept d.DataError as error: print(error)"
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "XDG_CACHE_HOME": str(tmp_path), "HF_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert "ylecun/mnist cannot be fetched from the Hugging Face hub" in done.stdout
    assert str(tmp_path / "pushcen" / "mnist.npz") in done.stdout


@pytest.mark.parametrize("place", ["fashion-mnist.npz", "fashion-mnist"])
def test_a_file_or_folder_in_the_cache_is_found_by_name(tmp_path, monkeypatch, place):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "pushcen").mkdir()
    if place.endswith("npz"):
        files.npz(tmp_path / "pushcen" / place, x_train=files.images(channels=1)[..., 0])
    else:
        files.idx(tmp_path / "pushcen" / place)
    data = load("fashion-mnist")
    assert data.classes[9] == "ankle boot"
    scale = KNOWN["fashion-mnist"].scale
    expected = (files.images(channels=1)[..., 0] / 255 - scale.mean[0]) / scale.std[0]
    np.testing.assert_allclose(data.inputs[:, 0].numpy(), expected, rtol=1e-5, atol=1e-6)


def test_columns_of_numbers_are_standardised_one_by_one(tmp_path):
    table = pa.table({"a": [1.0, 2.0, 3.0], "b": [5, 5, 5], "label": ["x", "y", "x"], "owner": ["eve", "bob", "eve"]})
    data = load(parquet(tmp_path / "a.parquet", table))
    torch.testing.assert_close(data.inputs, torch.tensor([[-1.5, 0.0], [0.0, 0.0], [1.5, 0.0]]) * (2 / 3) ** 0.5)
    assert data.classes == ("x", "y")
    assert data.owners.tolist() == [1, 0, 1]


def test_measured_means_and_deviations_are_those_of_all_pixels():
    images = files.images(3000, size=3)
    scale = Scale.of(images)
    np.testing.assert_allclose(scale.mean, (images / 255).mean(axis=(0, 1, 2)), rtol=1e-12)
    np.testing.assert_allclose(scale.std, (images / 255).std(axis=(0, 1, 2)), rtol=1e-12)


@pytest.mark.parametrize(("mean", "std"), [((0.5,), (0.0,)), ((0.5,), (float("nan"),)), ((0.5, 0.5), (1.0,))])
def test_a_scale_divides_by_positive_numbers(mean, std):
    with pytest.raises(OptionError, match="must have as many positive deviations as means"):
        Scale(mean, std)


def test_the_test_set_can_join_what_is_divided(tmp_path):
    path = files.npz(tmp_path / "a.npz", x_test=files.images(4), y_test=files.labels(4))
    assert len(load(path)) == 12
    pooled = load(path, pool_test=True)
    assert len(pooled) == 16
    assert pooled.test_inputs is None
    torch.testing.assert_close(pooled.inputs[:12], load(path).inputs, rtol=0, atol=0)
    with pytest.raises(DataError, match=r"pool_test = True: .* has no test set to pool"):
        load(files.npz(tmp_path / "b.npz"), pool_test=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cifar-10",), "source = 'cifar-10': not known. Did you mean cifar10"),
        (("fashion",), "Did you mean fashion-mnist"),
        (("no/such/file.npz",), "no/such/file.npz: no such file or folder"),
        (("cifar10", "gone.npz"), "gone.npz: no such file or folder"),
        (("digits", "a.npz"), "path = 'a.npz': digits come with scikit-learn"),
        (("mine", "a.npz"), "source = 'mine': not known, so it cannot be what 'a.npz' holds"),
        ((__file__,), "must be an npz or parquet file, or a folder"),
    ],
)
def test_what_cannot_be_found_is_named_with_what_would_do(arguments, message):
    source, *path = arguments
    with pytest.raises(DataError) as caught:
        load(source, path=path[0] if path else None)
    assert message in str(caught.value)


def test_files_that_do_not_fit_the_name_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"a.npz: has a label 10, but cifar10 has 10 classes"):
        load("cifar10", path=files.npz(tmp_path / "a.npz", y_train=np.arange(12) % 11))
    with pytest.raises(DataError, match="has 3 channels or columns, but scale has 1"):
        load("mnist", path=files.npz(tmp_path / "b.npz"))


def test_labels_that_a_model_cannot_give_are_refused():
    data = load("digits")
    check_labels(data, 10)
    with pytest.raises(DataError, match=r"digits: has labels from 0 to 9, which a model with 2 outputs .* needs 10"):
        check_labels(data, 2)
    with pytest.raises(DataError, match="has labels from 0 to 3 and 2 classes: must be from 0 to 1"):
        Data("mine", torch.zeros(4, 1), torch.arange(4), ("a", "b"))
