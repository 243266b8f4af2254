"""Images of many sizes become squares of one size when they are loaded, by their short side and their middle."""

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from PIL import Image

from pushcen.data import DataError, Scale, load
from pushcen.data.known import from_splits
from pushcen.errors import OptionError
from tests.data import files

PLAIN = Scale((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def striped(width, height):
    """Red, green, blue: thirds along the long side."""
    pixels = np.zeros((height, width, 3), np.uint8)
    for at in range(3):
        cut = slice(at * max(width, height) // 3, (at + 1) * max(width, height) // 3)
        pixels[(slice(None), cut) if width > height else (cut, slice(None))][..., at] = 255
    return pixels


def photographs(folder):
    for kind, (width, height) in {"wide": (90, 30), "high": (30, 90), "large": (2000, 1500)}.items():
        (folder / kind).mkdir(parents=True)
        (folder / kind / "a.png").write_bytes(files.png(striped(width, height)))
    return folder


def test_the_middle_of_each_photograph_is_kept(tmp_path):
    data = load(photographs(tmp_path), size=16, scale=PLAIN)
    assert data.inputs.shape == (3, 3, 16, 16)
    high, _, wide = data.inputs
    for image in (high, wide):
        assert image.mean((1, 2)).tolist() == pytest.approx([0, 1, 0], abs=0.02)  # green is the middle third


def test_images_of_the_hub_may_have_any_size_where_one_is_given():
    pictures = [Image.fromarray(striped(*sides)) for sides in ((90, 30), (30, 90))]
    features = datasets.Features({"img": datasets.Image(), "label": datasets.Value("int64")})
    split = datasets.Dataset.from_dict({"img": pictures, "label": [0, 1]}, features=features)
    arrays = from_splits(datasets.DatasetDict(train=split), "somebody/something", 16)
    assert arrays.train.inputs.shape == (2, 16, 16, 3)


@pytest.mark.parametrize("text", ["0.5", "0.5/0", "0.5/0.1,0.2", "nan/1", "0.5/inf", "a/b", "1/1/1", ""])
def test_a_scale_that_is_none_is_refused_with_an_example(text):
    with pytest.raises(OptionError, match=r"scale = .*: must be means and as many positive deviations: '0\.5,0\.4"):
        Scale.parse(text)


def test_without_a_size_the_error_names_the_option(tmp_path):
    photographs(tmp_path)
    with pytest.raises(DataError, match=r"a.png: .* pixels, but .* one size; size = 64, say, makes them alike"):
        load(tmp_path)
    for kind in ("high", "wide"):
        (tmp_path / kind / "a.png").unlink()
        (tmp_path / kind).rmdir()
    with pytest.raises(DataError, match=r"2000 x 1500 pixels: sides .* 1024; size = 64, say, makes"):
        load(tmp_path)


def test_a_photograph_is_turned_as_its_camera_says(tmp_path):
    upright = Image.new("RGB", (8, 8))
    upright.paste((255, 255, 255), (0, 0, 8, 4))  # light above
    turned, exif = upright.transpose(Image.Transpose.ROTATE_90), Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees clockwise to see it
    for kind in ("a", "b"):
        (tmp_path / kind).mkdir()
        turned.save(tmp_path / kind / "1.png", exif=exif)
    image = load(tmp_path, size=8, scale=PLAIN).inputs[0, 0]
    assert (image[:4].mean(), image[4:].mean()) == (1, 0)


def test_tables_of_images_and_arrays_are_resized_too(tmp_path):
    encoded = [files.png(striped(60 + at, 40)) for at in range(4)]
    pyarrow.parquet.write_table(pa.table({"image": encoded, "label": [0, 1, 0, 1]}), tmp_path / "a.parquet")
    assert load(tmp_path / "a.parquet", size=12).inputs.shape == (4, 3, 12, 12)
    assert load(files.npz(tmp_path / "a.npz"), size=12).inputs.shape == (12, 3, 12, 12)
    assert load("digits", size=12).inputs.shape == (1797, 1, 12, 12)


def test_a_table_of_numbers_has_no_size(tmp_path):
    pyarrow.parquet.write_table(pa.table({"x": [1.0, 2.0], "label": [0, 1]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"size = 12: .*a.parquet has no images"):
        load(tmp_path / "a.parquet", size=12)


def test_what_is_too_large_for_a_photograph_is_measured_and_refused(tmp_path):
    for kind in ("a", "b"):
        (tmp_path / kind).mkdir()
        Image.new("1", (9_001, 8)).save(tmp_path / kind / "1.png")
    with pytest.raises(DataError, match=r"1.png: an image of 9001 x 8 pixels: sides must be between 1 and 9000"):
        load(tmp_path, size=8)
