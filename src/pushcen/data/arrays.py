"""What every reader makes: plain arrays of one shape, checked before anything else sees them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pushcen.errors import DataError

MOST_CLASSES = 1 << 16  # a stray label of two thousand million must not make as many class names
LONGEST_SIDE = 1024  # pixels; this is for training sets held in memory, not for photographs
LONGEST_PHOTOGRAPH = 9_000  # pixels, of what is made smaller when it is loaded


@dataclass(frozen=True, eq=False)
class Samples:
    """Inputs, as uint8 images [N, H, W, C] or float columns [N, D], their labels, and if known whose they are."""

    inputs: NDArray[Any]
    labels: NDArray[Any]
    owners: NDArray[Any] | None = None


@dataclass(frozen=True, eq=False)
class Arrays:
    """A data set as read from `where`; `classes` names its labels, or is None where labels are bare numbers.

    >>> Arrays("a.npz", Samples(np.zeros((3, 8, 8, 1), np.uint8), np.zeros(2, np.int64)))
    Traceback (most recent call last):
    pushcen.errors.DataError: a.npz: 3 training samples have 2 labels
    """

    where: str
    train: Samples
    test: Samples | None = None
    classes: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        shape = self.train.inputs.shape[1:]
        for kind, part in (("training", self.train), ("test", self.test)):
            if part is None:
                continue
            if not len(part.inputs):
                raise DataError(f"{self.where}: no {kind} samples")
            if part.inputs.shape[1:] != shape:
                raise DataError(
                    f"{self.where}: test samples have shape {part.inputs.shape[1:]}, training samples {shape}"
                )
            for name, column in (("labels", part.labels), ("owners", part.owners)):
                if column is not None and column.shape != (len(part.inputs),):
                    raise DataError(f"{self.where}: {len(part.inputs)} {kind} samples have {column.size} {name}")
        if len(shape) == 3:
            check_size(shape[1], shape[0], self.where)
            if shape[2] not in (1, 3):
                raise DataError(f"{self.where}: images have {shape[2]} channels: must be 1 or 3")


def check_size(width: int, height: int, where: str, longest: int = LONGEST_SIDE) -> None:
    """Refuse an image too large to be a training image, before its pixels are decoded.

    >>> check_size(30_000, 30_000, "bomb.png")
    Traceback (most recent call last):
    pushcen.errors.DataError: bomb.png: an image of 30000 x 30000 pixels: sides must be between 1 and 1024
    >>> check_size(4000, 3000, "photo.jpg")
    Traceback (most recent call last):
    pushcen.errors.DataError: photo.jpg: an image of 4000 x 3000 ...; size = 64, say, makes images of many sizes alike
    """
    if not (1 <= width <= longest and 1 <= height <= longest):
        helps = longest == LONGEST_SIDE and 1 <= min(width, height) <= max(width, height) <= LONGEST_PHOTOGRAPH
        raise DataError(
            f"{where}: an image of {width} x {height} pixels: sides must be between 1 and {longest}"
            + "; size = 64, say, makes images of many sizes alike" * helps
        )


def number(columns: Sequence[NDArray[Any]], where: str) -> tuple[list[NDArray[np.int64]], tuple[str, ...] | None]:
    """Turn label columns (training, test) into whole numbers from zero, with their names if they were strings.

    >>> number([np.array(["dog", "cat"]), np.array(["cat"])], "pets.npz")
    ([array([1, 0]), array([0])], ('cat', 'dog'))
    >>> number([np.array([0, -1])], "a.npz")
    Traceback (most recent call last):
    pushcen.errors.DataError: a.npz: label -1: must be a whole number from 0 to 65535
    """
    if all(column.dtype.kind == "U" for column in columns):
        names = np.unique(columns[0])
        for column in columns[1:]:
            if strange := sorted(set(column.tolist()) - set(names.tolist())):
                raise DataError(f"{where}: the test set has a label that the training set has not: {strange[0]!r}")
        return [np.searchsorted(names, column).astype(np.int64) for column in columns], tuple(names.tolist())
    for column in columns:
        if column.dtype.kind not in "iu":
            raise DataError(f"{where}: labels of type {column.dtype}: must be whole numbers or strings")
        for label in (column.min(initial=0), column.max(initial=0)):
            if not 0 <= label < MOST_CLASSES:
                raise DataError(f"{where}: label {label}: must be a whole number from 0 to {MOST_CLASSES - 1}")
    return [column.astype(np.int64) for column in columns], None
