"""A data set as training uses it: normalised tensors, held once in memory however many clients look at them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pushcen.data.columns import Columns
from pushcen.errors import DataError, OptionError

_CHUNK = 1024  # samples converted at a time: the peak stays near one copy


@dataclass(frozen=True, eq=False)
class Data:
    """Inputs with their labels, a global test set if there is one, and who owns which sample if that is known.

    Labels are classes, or, where there are no `classes`, numbers.

    Any tensors can be used, not only images and not only what `load` returns:

    >>> flowers = Data("flowers", torch.rand(150, 4), torch.arange(150) % 3, classes=("setosa", "virginica", "other"))
    >>> len(flowers), len(flowers.classes)
    (150, 3)
    """

    name: str
    inputs: torch.Tensor  # float32; images are [N, C, H, W]
    labels: torch.Tensor  # int64 [N], or float32 if they are numbers
    classes: tuple[str, ...]
    test_inputs: torch.Tensor | None = None
    test_labels: torch.Tensor | None = None
    owners: torch.Tensor | None = None  # int64 [N], from zero
    columns: Columns | None = None  # what the inputs are, if it was a table
    scale: "Scale | None" = None  # by which they were normalised, if `load` did

    def __post_init__(self) -> None:
        if (self.test_inputs is None) != (self.test_labels is None):
            raise DataError(f"{self.name}: test inputs and test labels come together or not at all")
        for inputs, labels in ((self.inputs, self.labels), (self.test_inputs, self.test_labels)):
            if inputs is None or labels is None:
                continue
            if labels.shape != (len(inputs),) or not len(inputs):
                raise DataError(f"{self.name}: {len(inputs)} samples have labels of shape {tuple(labels.shape)}")
            if not self.classes:
                if not (labels.is_floating_point() and labels.isfinite().all()):
                    raise DataError(f"{self.name}: has no classes: its labels must be finite numbers, float32")
            elif not 0 <= int(labels.min()) <= int(labels.max()) < len(self.classes):
                raise DataError(
                    f"{self.name}: has labels from {int(labels.min())} to {int(labels.max())} and "
                    f"{len(self.classes)} classes: must be from 0 to {len(self.classes) - 1}"
                )
        if self.owners is not None and self.owners.shape != self.labels.shape:
            raise DataError(f"{self.name}: {len(self)} samples have {len(self.owners)} owners")

    def __len__(self) -> int:
        return len(self.labels)

    def groups(self) -> tuple[NDArray[np.int64], tuple[str, ...]]:
        """Return the class of each sample and the classes' names; of numbers, in which tenth of them it is.

        >>> ages = Data("ages", torch.rand(20, 4), torch.arange(20.0), classes=())
        >>> ages.groups()[0][:5].tolist(), ages.groups()[1][0]
        ([0, 0, 1, 1, 2], 'below 1.9')
        """
        if self.classes:
            return self.labels.numpy(), self.classes
        labels = self.labels.double().numpy()
        edges = np.unique(np.quantile(labels, np.arange(1, 10) / 10))
        names = [f"below {edges[0]:.6g}", *(f"from {edge:.6g}" for edge in edges)]
        return np.searchsorted(edges, labels, side="right"), tuple(names)


def check_labels(data: Data, outputs: int) -> None:
    """Refuse data with labels that a model with so many outputs cannot give.

    >>> check_labels(Data("halves", torch.rand(4, 2), torch.tensor([0, 1, 1, 2]), ("a", "b", "c")), outputs=2)
    Traceback (most recent call last):
    pushcen.errors.DataError: halves: has labels from 0 to 2, which a model with 2 outputs cannot give: it needs 3
    """
    for labels in (data.labels, data.test_labels):
        if labels is not None and int(labels.max()) >= outputs:
            raise DataError(
                f"{data.name}: has labels from {int(labels.min())} to {int(labels.max())}, which a model with "
                f"{outputs} outputs cannot give: it needs {int(labels.max()) + 1}"
            )


@dataclass(frozen=True)
class Scale:
    """A mean and a standard deviation for each channel of images (of values from 0 to 1) or each column of a table.

    >>> images = np.array([0, 255, 0, 255], np.uint8).reshape(2, 1, 2, 1)
    >>> scale = Scale.of(images)
    >>> scale
    Scale(mean=(0.5,), std=(0.5,))
    >>> scale.apply(images).tolist()
    [[[[-1.0, 1.0]]], [[[-1.0, 1.0]]]]
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        fits = len(self.mean) == len(self.std) and all(map(math.isfinite, self.mean))
        if not fits or not all(0 < value < math.inf for value in self.std):
            raise OptionError(f"scale = {self}: must have as many positive deviations as means")

    def __str__(self) -> str:
        return "/".join(",".join(f"{value:.6g}" for value in values) for values in (self.mean, self.std))

    @classmethod
    def parse(cls, text: str) -> "Scale":
        """Return the scale that a text has, as `str` writes it: means, a slash, deviations.

        >>> str(Scale.parse("0.5, 0.25 / 0.2, 0.1"))
        '0.5,0.25/0.2,0.1'
        """
        try:
            mean, std = (tuple(map(float, part.split(","))) for part in text.split("/"))
            return cls(mean, std)
        except (ValueError, OptionError):
            raise OptionError(
                f"scale = {text!r:.80}: must be means and as many positive deviations: '0.5,0.4,0.4/0.2,0.2,0.2'"
            ) from None

    @classmethod
    def of(cls, inputs: NDArray[Any]) -> "Scale":
        """Return the scale of uint8 images [N, H, W, C], exactly, or of columns [N, D]; constants are divided by 1."""
        if inputs.ndim == 2:
            mean, std = inputs.mean(axis=0, dtype=np.float64), inputs.std(axis=0, dtype=np.float64)
        else:
            counts = np.zeros((inputs.shape[3], 256), np.int64)
            for begin in range(0, len(inputs), _CHUNK):
                for channel, row in enumerate(counts):
                    row += np.bincount(inputs[begin : begin + _CHUNK, ..., channel].ravel(), minlength=256)
            share = counts / counts.sum(axis=1, keepdims=True)
            values = np.arange(256) / 255
            mean = share @ values
            std = np.sqrt(np.einsum("cv,cv->c", share, (values - mean[:, None]) ** 2))
        return cls(tuple(mean.tolist()), tuple(np.where(std > 0, std, 1.0).tolist()))

    def apply(self, inputs: NDArray[Any]) -> torch.Tensor:
        """Return uint8 images [N, H, W, C] as float32 [N, C, H, W], or columns as float32 [N, D], normalised."""
        mean, std = np.array(self.mean), np.array(self.std)
        if inputs.ndim == 2:
            return torch.from_numpy(((inputs - mean) / std).astype(np.float32))
        samples, height, width, channels = inputs.shape
        table = ((np.arange(256)[:, None] / 255 - mean) / std).astype(np.float32)  # the same value for the same byte
        result = np.empty((samples, channels, height, width), np.float32)
        for begin in range(0, samples, _CHUNK):
            for channel in range(channels):
                chunk = inputs[begin : begin + _CHUNK, ..., channel]
                result[begin : begin + _CHUNK, channel] = table[chunk, channel]
        return torch.from_numpy(result)
