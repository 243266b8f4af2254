"""The passes of `numba_kernels.py` as torch operations, for tensors on any device. Same functions, same results.

Work goes in chunks, so that no temporary grows with the layer.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from pushcen.codec.bins import Bins
from pushcen.codec.codebook import Codebook, Values
from pushcen.codec.schema import Spans

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
_CHUNK = 1 << 20


def largest(weights: torch.Tensor) -> float:
    """Return the largest magnitude; infinity if anything is not finite.

    >>> largest(torch.tensor([1.0, -3.0])), largest(torch.tensor([1.0, float("nan")]))
    (3.0, inf)
    """
    most = float(weights.abs().max()) if weights.numel() else 0.0
    return most if np.isfinite(most) else np.inf


def histogram(weights: torch.Tensor, bins: Bins) -> tuple[Floats, Floats, float]:
    """Count and add up the weights in each bin; return that, and what `largest` does.

    What lies beyond the outermost bin falls into it.

    >>> bins = Bins(np.float32(1), shift=22, half=2)
    >>> histogram(torch.tensor([-0.75, 0.25, 0.25, 9.0]), bins)
    (array([1., 0., 2., 1.]), array([-0.75,  0.  ,  0.5 ,  9.  ]), 9.0)
    """
    counts = torch.zeros(2 * bins.half, dtype=torch.float64, device=weights.device)
    sums = torch.zeros_like(counts)
    for chunk in torch.split(weights, _CHUNK):
        steps = ((chunk.abs() + float(bins.knee)).view(torch.int32) - bins.base) >> bins.shift
        at = bins.half + (steps.clamp(max=bins.half - 1) ^ (chunk.view(torch.int32) >> 31))
        counts += torch.bincount(at, minlength=counts.numel())
        sums.index_add_(0, at, chunk.double())
    return counts.cpu().numpy(), sums.cpu().numpy(), largest(weights)


def assign(weights: torch.Tensor, cells: Codebook, bins: Bins) -> torch.Tensor:  # noqa: ARG001 (same as in numba_kernels.py)
    """Return each weight's index, one byte each.

    >>> cells = Codebook.nearest(np.array([-1.0, 0.0, 3.0]), zero_index=1)
    >>> assign(torch.tensor([-9.0, 0.0, 0.1, 1.6]), cells, Bins(np.float32(1), shift=14, half=2000))
    tensor([0, 1, 1, 2], dtype=torch.uint8)
    """
    thresholds = torch.from_numpy(cells.thresholds).to(weights.device)
    parts = [
        torch.bucketize(chunk, thresholds, out_int32=True).to(torch.uint8) for chunk in torch.split(weights, _CHUNK)
    ]
    return torch.cat(parts)


def assign_packed(weights: torch.Tensor, cells: Codebook, bins: Bins, bits: int, out: Bytes) -> None:
    """Write each weight's index at `bits` bits to the start of `out`: `assign` and packing, chunk by chunk."""
    shifts = bits * torch.arange(8, device=weights.device)
    at = 0
    for chunk in torch.split(weights, _CHUNK):
        indices = assign(chunk, cells, bins)
        indices = torch.nn.functional.pad(indices, (0, -indices.numel() % 8))
        words = (indices.view(-1, 8).long() << shifts).sum(dim=1)
        packed = words.view(torch.uint8).view(-1, 8)[:, :bits].reshape(-1)
        size = -(-chunk.numel() * bits // 8)
        out[at : at + size] = packed[:size].cpu().numpy()
        at += size


def add_packed(packed: Bytes, bits: int, tables: Values, spans: Spans, into: torch.Tensor) -> None:
    """Add `table[index]` to each span of `into`, straight from the packed indices, which stand layer after layer.

    >>> into = torch.zeros(4)
    >>> add_packed(np.array([0b10_00_01], np.uint8), 2, np.array([[0, 5, 7]], np.float32), np.array([[1, 4]]), into)
    >>> into
    tensor([0., 5., 0., 7.])
    """
    for table, (begin, end) in zip(tables, spans.tolist(), strict=True):
        size = -(-(end - begin) * bits // 8)
        _add_layer(packed[:size], bits, table, into[begin:end])
        packed = packed[size:]


def _add_layer(packed: Bytes, bits: int, table: Values, into: torch.Tensor) -> None:
    shifts = bits * torch.arange(8, device=into.device)
    values = torch.from_numpy(table).to(into.device)
    for number, target in enumerate(torch.split(into, _CHUNK)):
        begin = number * (_CHUNK // 8) * bits
        groups = -(-target.numel() // 8)
        padded = np.zeros(groups * bits, np.uint8)
        here = packed[begin : begin + groups * bits]
        padded[: here.size] = here
        octets = torch.from_numpy(padded).to(into.device).view(-1, bits)
        words = torch.nn.functional.pad(octets, (0, 8 - bits)).contiguous().view(torch.int64)
        indices = (words >> shifts) & ((1 << bits) - 1)
        target += values[indices.reshape(-1)[: target.numel()]]


def add_values(values: Values, weight: float, spans: Spans, into: torch.Tensor) -> None:
    """Add `weight * values` to the spans of `into`, one after the other.

    >>> into = torch.ones(4)
    >>> add_values(np.array([1, 2], np.float32), 0.5, np.array([[0, 1], [3, 4]]), into)
    >>> into
    tensor([1.5000, 1.0000, 1.0000, 2.0000])
    """
    for begin, end in spans.tolist():
        for target in torch.split(into[begin:end], _CHUNK):
            chunk, values = values[: target.numel()] * np.float32(weight), values[target.numel() :]
            target += torch.from_numpy(chunk).to(into.device)
