"""NumPy's npz files: `x_train`, `y_train`, and if there are any `x_test`, `y_test`, `owner_train`. Never pickles."""

import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pushcen.data.arrays import Arrays, Samples, number
from pushcen.errors import DataError
from pushcen.npz import UNREADABLE, read_array


def read_npz(path: Path) -> Arrays:
    """Read a data set of uint8 images [N, H, W, C], or [N, H, W] in grey, from an npz file.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "tiny.npz"
    >>> np.savez(path, x_train=np.zeros((5, 8, 8, 3), np.uint8), y_train=np.arange(5))
    >>> read_npz(path).train.inputs.shape
    (5, 8, 8, 3)
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")}
            if missing := {"x_train", "y_train"} - names:
                raise DataError(f"{path}: has no array {sorted(missing)[0]}; it has {', '.join(sorted(names))[:200]}")
            if ("x_test" in names) != ("y_test" in names):
                raise DataError(f"{path}: has only one of x_test and y_test")
            parts = ["train", "test"] if "x_test" in names else ["train"]
            images = [_images(archive, f"x_{part}", path) for part in parts]
            labels, classes = number([read_array(archive, f"y_{part}", path, 1) for part in parts], str(path))
            owners = read_array(archive, "owner_train", path, 1) if "owner_train" in names else None
    except DataError:
        raise
    except UNREADABLE as error:
        raise DataError(f"{path}: not a readable npz file: {error}") from None
    train, *test = (Samples(x, y) for x, y in zip(images, labels, strict=True))
    return Arrays(str(path), Samples(train.inputs, train.labels, owners), test[0] if test else None, classes)


def _images(archive: zipfile.ZipFile, name: str, path: Path) -> NDArray[np.uint8]:
    images = read_array(archive, name, path, 3, 4)
    if images.dtype != np.uint8:
        raise DataError(f"{path}: {name} has type {images.dtype}: must be uint8")
    return images if images.ndim == 4 else images[..., None]
