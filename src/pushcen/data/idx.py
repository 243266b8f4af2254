"""IDX files, the format of MNIST and Fashion-MNIST, plain or gzipped."""

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pushcen.data.arrays import Arrays, Samples, number
from pushcen.errors import DataError

_INFLATE = 1032  # no gzip stream grows more than so many times
_PARTS = {"train": "train", "test": "t10k"}


def is_idx(folder: Path) -> bool:
    """Return whether `folder` holds IDX files by the names that MNIST gives them.

    >>> is_idx(Path())
    False
    """
    return _find(folder, "train", "images", 3) is not None


def read_idx_folder(folder: Path) -> Arrays:
    """Read the four files of MNIST or Fashion-MNIST; the two of the test set may be missing.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name, content in (
    ...     ("train-images-idx3-ubyte", "00000803 00000001 00000002 00000002 00ff00ff"),
    ...     ("train-labels-idx1-ubyte", "00000801 00000001 07"),
    ... ):
    ...     _ = (folder / name).write_bytes(bytes.fromhex(content))
    >>> read_idx_folder(folder).train.inputs[0, :, :, 0].tolist()
    [[0, 255], [0, 255]]
    """
    found: dict[str, Samples] = {}
    for part, prefix in _PARTS.items():
        images, labels = _find(folder, prefix, "images", 3), _find(folder, prefix, "labels", 1)
        if images and labels:
            (numbers,), _ = number([read_idx(labels, 1)], str(labels))
            found[part] = Samples(read_idx(images, 3)[..., None], numbers)
        elif images or labels or part == "train":
            missing = f"{prefix}-labels-idx1-ubyte" if images else f"{prefix}-images-idx3-ubyte"
            raise DataError(f"{folder / missing}: no such file, nor with .gz")
    return Arrays(str(folder), found["train"], found.get("test"))


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """Read one IDX file of bytes with that many dimensions; its header is checked before anything is allocated."""
    size = path.stat().st_size
    most = size * _INFLATE if path.suffix == ".gz" else size
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            header = file.read(4 + 4 * dimensions)
            if header[:4] != bytes([0, 0, 8, dimensions]) or len(header) < 4 + 4 * dimensions:
                raise DataError(f"{path}: not an IDX file of bytes with {dimensions} dimensions")
            shape = tuple(int.from_bytes(header[at : at + 4], "big") for at in range(4, len(header), 4))
            count = math.prod(shape)
            if len(header) + count > most:
                raise DataError(f"{path}: its header says {shape}, more than its {size} bytes can hold")
            body = file.read(count + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
    if len(body) != count:
        raise DataError(f"{path}: its header says {shape}, but it holds {'more' if len(body) > count else 'less'}")
    return np.frombuffer(body, np.uint8).reshape(shape)


def _find(folder: Path, prefix: str, what: str, dimensions: int) -> Path | None:
    stems = (f"{prefix}-{what}-idx{dimensions}-ubyte", f"{prefix}-{what}.idx{dimensions}-ubyte")
    names = (stem + end for stem in stems for end in ("", ".gz"))
    return next((folder / name for name in names if (folder / name).is_file()), None)
