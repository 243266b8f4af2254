"""Normalisation: what is taken off each channel and what it is divided by, once, when data is loaded."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pushcen.errors import OptionError

_CHUNK = 1024  # samples converted at a time: the peak stays near one copy


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
        if len(self.mean) != len(self.std) or not all(0 < value < math.inf for value in self.std):
            raise OptionError(f"scale = {self}: must have as many positive deviations as means")

    @classmethod
    def of(cls, inputs: NDArray[Any]) -> "Scale":
        """Measure it on uint8 images [N, H, W, C], exactly, or on columns [N, D]; what never varies keeps its size."""
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
