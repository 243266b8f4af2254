"""From a name or a path to `Data`: which reader, which normalisation."""

import difflib
import importlib.util
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from pushcen.data.arrays import Arrays, Samples
from pushcen.data.data import Data, Scale
from pushcen.data.idx import is_idx, read_idx_folder
from pushcen.data.images import fit, read_folder
from pushcen.data.known import KNOWN, read_hub
from pushcen.data.npz import read_npz
from pushcen.data.sheet_files import SUFFIXES
from pushcen.data.table import read_parquet
from pushcen.errors import DataError

NAMES = ("digits", *KNOWN)


def load(
    source: str | Path = "digits",
    *,
    path: str | Path | None = None,
    pool_test: bool = False,
    scale: Scale | None = None,
    size: int | None = None,
) -> Data:
    """Load a data set by name, or from a file or folder, and normalise it.

    A name other than `digits` is looked for in pushcen's cache folder (`cifar10.npz`, `cifar10.parquet` or a folder
    `cifar10`) and then on the Hugging Face hub; `path` says that it is somewhere else. `pool_test` adds the global test
    set to the samples that clients will share. Named data has a `scale` of its own; that of other files is measured on
    their training samples unless it is given, as it must be where peers load different files. `size` makes images
    of any size squares of so many pixels a side: the short side is resized, the middle of the long one kept.

    >>> data = load("digits")
    >>> data.inputs.shape, data.inputs.dtype, len(data.classes)
    (torch.Size([1797, 1, 8, 8]), torch.float32, 10)
    >>> load("cifar")
    Traceback (most recent call last):
    pushcen.errors.DataError: source = 'cifar': not known. Did you mean cifar10 or cifar100? ...
    """
    name = str(source)
    known = KNOWN.get(name)
    if name == "digits":
        if path is not None:
            raise DataError(f"path = {str(path)!r}: digits come with scikit-learn; leave the name or the path out")
        arrays = read_digits()
    elif known:
        local = Path(path) if path is not None else cached(name)
        arrays = read(local, size) if local else read_hub(known.repository, cache_folder() / f"{name}.npz", size)
        scale = scale or known.scale
    elif path is not None:
        raise DataError(f"source = {name!r}: not known, so it cannot be what {str(path)!r} holds. {_nearest(name)}")
    elif Path(source).exists():
        arrays = read(Path(source), size)
    elif isinstance(source, Path) or os.sep in name or Path(name).suffix:
        raise DataError(f"{name}: no such file or folder")
    else:
        raise DataError(f"source = {name!r}: not known. {_nearest(name)}")
    return _data(name, _fitted(arrays, size), known.classes if known else (), scale, pool_test)


def read(path: Path, size: int | None = None) -> Arrays:
    """Read a local file or folder by what it is: npz, parquet, IDX files, or images; these may have any size.

    >>> read(Path("no/such.npz"))
    Traceback (most recent call last):
    pushcen.errors.DataError: no/such.npz: no such file or folder
    """
    if path.is_dir():
        if is_idx(path):
            return read_idx_folder(path)
        return read_parquet(path, size) if any(path.glob("*.parquet")) else read_folder(path, size)
    if not path.is_file():
        raise DataError(f"{path}: no such file or folder")
    if path.suffix == ".npz":
        return read_npz(path)
    if path.suffix == ".parquet":
        return read_parquet(path, size)
    if path.suffix in SUFFIXES:
        raise DataError(f"{path}: is a table: name the column to learn, by label = 'NAME'")
    raise DataError(f"{path}: must be an npz or parquet file, or a folder of IDX files, parquet files or images")


def cache_folder() -> Path:
    """Return where local copies of named data sets are looked for: `~/.cache/pushcen`, or below XDG_CACHE_HOME."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pushcen"


def cached(name: str) -> Path | None:
    """Return the local copy of a named data set, if there is one."""
    places = (cache_folder() / file for file in (f"{name}.npz", f"{name}.parquet", name))
    return next((place for place in places if place.exists()), None)


def read_digits() -> Arrays:
    """Read the digits from scikit-learn's own file: to import all of it takes longer than a small run."""
    package = importlib.util.find_spec("sklearn")
    if package is None or package.origin is None:
        raise DataError("source = 'digits': comes with scikit-learn, which is not installed")
    table = np.loadtxt(Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz", delimiter=",")
    images, labels = table[:, :-1].reshape(-1, 8, 8, 1), table[:, -1]
    return Arrays("digits", Samples(images.astype(np.uint8), labels.astype(np.int64)))


def _data(name: str, arrays: Arrays, classes: tuple[str, ...], scale: Scale | None, pool_test: bool) -> Data:
    train, test = arrays.train, arrays.test
    scale = scale or Scale.of(train.inputs)
    channels = train.inputs.shape[-1]
    if len(scale.mean) != channels:
        raise DataError(f"{arrays.where}: has {channels} channels or columns, but scale has {len(scale.mean)}")
    top = max(int(part.labels.max()) for part in (train, test) if part)
    if classes and top >= len(classes):
        raise DataError(f"{arrays.where}: has a label {top}, but {name} has {len(classes)} classes, from 0")
    if pool_test:
        train, test = _pooled(arrays), None
    return Data(
        name,
        scale.apply(train.inputs),
        torch.from_numpy(train.labels),
        arrays.classes or classes or tuple(map(str, range(top + 1))),
        scale.apply(test.inputs) if test else None,
        torch.from_numpy(test.labels) if test else None,
        None if train.owners is None else torch.from_numpy(np.unique(train.owners, return_inverse=True)[1]),
        scale=scale,
    )


def _fitted(arrays: Arrays, size: int | None) -> Arrays:
    """Return the images as squares of so many pixels a side, where that is asked for and they are not so already."""
    shape = arrays.train.inputs.shape[1:]
    if size is None or shape[:2] == (size, size):
        return arrays
    if len(shape) != 3:
        raise DataError(f"size = {size}: {arrays.where} has no images")
    return replace(arrays, train=_resized(arrays.train, size), test=arrays.test and _resized(arrays.test, size))


def _resized(samples: Samples, size: int) -> Samples:
    from PIL import Image

    pixels = np.empty((len(samples.inputs), size, size, samples.inputs.shape[3]), np.uint8)
    for row, image in enumerate(samples.inputs):
        made = fit(Image.fromarray(image[..., 0] if image.shape[2] == 1 else image), size)
        pixels[row] = np.asarray(made).reshape(pixels.shape[1:])
    return replace(samples, inputs=pixels)


def _pooled(arrays: Arrays) -> Samples:
    train, test = arrays.train, arrays.test
    if test is None:
        raise DataError(f"pool_test = True: {arrays.where} has no test set to pool")
    if train.owners is not None:
        raise DataError(f"pool_test = True: {arrays.where} does not say who owns its test samples")
    return Samples(np.concatenate((train.inputs, test.inputs)), np.concatenate((train.labels, test.labels)))


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), NAMES, n=2, cutoff=0.5)
    guess = f"Did you mean {' or '.join(near)}? " if near else ""
    return f"{guess}The names are {', '.join(NAMES)}; a file or folder does as well"
