"""Nothing in a file is believed: what is wrong is refused with the file's name, before it is allocated."""

import gzip
import io
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from pushcen.data import DataError, load
from tests.data import files


def npy(array=None, *, shape=None, descr="|u1"):
    """An npy file with any header."""
    file = io.BytesIO()
    if array is not None:
        np.save(file, array)
    else:
        np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    return file.getvalue()


def archive(path, **members):
    with zipfile.ZipFile(path, "w") as out:
        for name, data in ({"x_train": npy(files.images()), "y_train": npy(files.labels())} | members).items():
            out.writestr(f"{name}.npy", data)
    return path


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"x_train": npy(shape=(10**13, 8, 8, 3))}, "x_train says .* which its file does not hold"),
        ({"x_train": npy(files.images())[:-1]}, "which its file does not hold"),
        ({"x_train": npy(files.images().astype(np.float32))}, "x_train has type float32: must be uint8"),
        ({"x_train": npy(files.images(channels=2))}, "images have 2 channels: must be 1 or 3"),
        ({"x_train": npy(np.zeros((12, 2000, 2, 1), np.uint8))}, "an image of 2 x 2000 pixels"),
        ({"x_train": npy(np.zeros((12, 64), np.uint8))}, "must have 3 or 4 dimensions"),
        ({"x_train": npy(shape=(-1, 8, 8, 3))}, "x_train"),
        ({"x_train": b"not numpy"}, "not a readable npz file: the magic string is not correct"),
        ({"y_train": npy(files.labels(11))}, "12 training samples have 11 labels"),
        ({"y_train": npy(files.labels() - 1)}, "label -1: must be a whole number from 0"),
        ({"y_train": npy(files.labels() + 2**40)}, "must be a whole number from 0 to 65535"),
        ({"y_train": npy(files.labels() / 2)}, "labels of type float64"),
        ({"x_test": npy(files.images(3))}, "has only one of x_test and y_test"),
        ({"x_test": npy(files.images(3, size=9)), "y_test": npy(files.labels(3))}, "test samples have shape"),
        ({"x_train": npy(files.images(0)), "y_train": npy(files.labels(0))}, "no training samples"),
        ({"owner_train": npy(files.labels(5))}, "12 training samples have 5 owners"),
    ],
)
def test_npz_files_that_lie_are_refused(tmp_path, members, message):
    path = archive(tmp_path / "a.npz", **members)
    with pytest.raises(DataError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


class Bomb:
    def __reduce__(self):
        return exec, ("raise SystemExit('the pickle ran')",)


def test_no_pickle_is_ever_loaded(tmp_path):
    objects = io.BytesIO()
    np.save(objects, np.array([Bomb()], object), allow_pickle=True)
    with pytest.raises(DataError, match="y_train has type object: only plain numbers and strings are read"):
        load(archive(tmp_path / "a.npz", y_train=objects.getvalue()))
    (tmp_path / "b.npz").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(DataError, match=r"b.npz: not a readable npz file"):
        load(tmp_path / "b.npz")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (bytes([0, 0, 8, 3]) + b"\xff" * 12, "more than its .* bytes can hold"),
        (bytes([0, 0, 8, 3]) + np.array([12, 8, 9], ">u4").tobytes(), "more than its .* bytes can hold"),
        (bytes([0, 0, 8, 3]) + np.array([12, 8, 7], ">u4").tobytes(), "but it holds more"),
        (bytes([0, 0, 13, 3]) + np.array([12, 8, 8], ">u4").tobytes(), "not an IDX file of bytes with 3 dimensions"),
        (b"", "not an IDX file"),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_idx_files_that_lie_are_refused(tmp_path, header, message, zipped):
    folder = files.idx(tmp_path, zipped=zipped)
    path = folder / ("train-images-idx3-ubyte" + ".gz" * zipped)
    data = header + files.images(channels=1).tobytes() if header else b""
    path.write_bytes(gzip.compress(data) if zipped else data)
    if zipped and header[7:8] == b"\x0c" and "can hold" in message:
        message = "but it holds less"  # the size of a gzip file says little, so it is read, no further than claimed
    with pytest.raises(DataError, match=message) as caught:
        load(folder)
    assert str(path) in str(caught.value)


def test_a_missing_or_truncated_idx_file_is_named(tmp_path):
    folder = files.idx(tmp_path, zipped=True)
    path = folder / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"t10k-labels-idx1-ubyte.gz: cannot be read"):
        load(folder)
    path.unlink()
    with pytest.raises(DataError, match=r"t10k-labels-idx1-ubyte: no such file, nor with .gz"):
        load(folder)


def test_a_file_that_claims_terabytes_costs_no_memory(tmp_path):
    """In a process that may take 200 MB more than it has when it starts to load."""
    lying = [archive(tmp_path / "a.npz", x_train=npy(shape=(10**9, 32, 32, 3)))]
    lying.append(files.idx(tmp_path / "idx"))
    header = bytes([0, 0, 8, 3]) + np.array([2**31, 28, 28], ">u4").tobytes()
    (lying[1] / "train-images-idx3-ubyte").write_bytes(header + bytes(100))
    program = f"""
import resource
from pushcen.data import DataError, load
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 200_000_000,) * 2)
for path in {list(map(str, lying))!r}:
    try:
        load(path)
    except DataError:
        print("refused")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "refused\n" * 2, done.stderr


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 10**6), value=st.integers(0, 255), cut=st.booleans())
@pytest.mark.parametrize("kind", ["npz", "idx", "parquet"])
def test_damaged_bytes_are_refused_or_harmless_but_never_another_error(tmp_path, kind, at, value, cut):
    if kind == "npz":
        path = target = files.npz(tmp_path / "a.npz")
    elif kind == "idx":
        path = files.idx(tmp_path / "idx", test=False)
        target = path / "train-images-idx3-ubyte"
    else:
        path = target = tmp_path / "a.parquet"
        pyarrow.parquet.write_table(pa.table({"a": np.arange(12.0), "label": files.labels()}), path)
    data = bytearray(target.read_bytes())
    at %= len(data)
    data[at] = value
    target.write_bytes(bytes(data[:at]) if cut else bytes(data))
    try:
        loaded = load(path)
    except DataError:
        return
    assert len(loaded) == 12
    assert loaded.inputs.isfinite().all()


def test_images_are_measured_before_they_are_decoded(tmp_path):
    files.folder(tmp_path)
    Image.new("RGB", (9, 8)).save(tmp_path / "bee" / "zz.png")
    with pytest.raises(DataError, match=r"zz.png: 9 x 8 pixels, but .*00.png has 8 x 8: all images .* one size"):
        load(tmp_path)
    Image.new("1", (30_000, 30_000)).save(tmp_path / "ant" / "00.png")
    with pytest.raises(DataError, match=r"00.png: (an image of 30000 x 30000 pixels|not a readable image)"):
        load(tmp_path)


@pytest.mark.parametrize("damage", [lambda data: data[:-40], lambda data: b"not an image", lambda data: b""])
def test_a_damaged_image_is_named(tmp_path, damage):
    files.folder(tmp_path)
    path = tmp_path / "bee" / "01.png"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=r"bee/01.png: (the image is damaged|not a readable image)"):
        load(tmp_path)


@pytest.mark.parametrize(
    "line", ["../../secret.png\tn0\t0", "val_0.JPEG\tn7\t0", "val_0.JPEG", "/etc/passwd\tn0", "nowhere.JPEG\tn0\t0"]
)
def test_annotations_name_only_images_beside_them(tmp_path, line):
    files.tiny_imagenet(tmp_path)
    (tmp_path / "val" / "val_annotations.txt").write_text(line)
    with pytest.raises(DataError, match=r"val_annotations.txt, line 1: must be|nowhere.JPEG: not a readable image"):
        load(tmp_path)


def test_folders_without_images_are_refused(tmp_path):
    with pytest.raises(DataError, match="has no folders; images must be in one folder for each class"):
        load(tmp_path)
    (tmp_path / "ant").mkdir()
    with pytest.raises(DataError, match="ant: no images"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1.0]}, "has no column label or fine_label; it has a"),
        ({"label": [1]}, "has no columns besides labels"),
        ({"a": [1.0, None], "label": [0, 1]}, "column a has 1 missing values"),
        ({"a": [1.0, float("nan")], "label": [0, 1]}, "column a, of type .*: must be numbers, finite"),
        ({"a": [1.0, 1e300], "label": [0, 1]}, "column a, of type .*: must be numbers, finite and below 1e30"),
        ({"a": ["x"], "label": [0]}, "column a, of type .*: must be numbers, finite"),
        ({"image": ["/etc/passwd"], "label": [0]}, "row 0: must be an encoded image, as bytes"),
        ({"image": [{"bytes": None, "path": "/etc/passwd"}], "label": [0]}, "must be an encoded image, as bytes"),
        ({"a": [b"\x89"], "label": [0]}, "column a has type binary: must be numbers or strings"),
        ({"image": [b"no image"], "label": [0]}, "row 0: not a readable image"),
    ],
)
def test_tables_that_cannot_be_used_say_which_column(tmp_path, columns, message):
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=message) as caught:
        load(tmp_path / "a.parquet")
    assert "a.parquet" in str(caught.value)


def test_a_file_that_is_no_parquet_is_refused(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(DataError, match=r"a.parquet: not readable as parquet"):
        load(tmp_path / "a.parquet")
