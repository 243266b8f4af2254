"""What a message costs: the paper's formulas (its appendix on WCP, and its Table 2) as functions."""

import math
from dataclasses import dataclass

from torch import nn

from pushcen.codec.schema import Schema


def formula_bytes(clustered: list[int], unclustered: int, clusters: int) -> float:
    """Return the paper's size of a message: indices, a table of K floats a layer, and what is not clustered.

    `clustered` has the number of weights of each clustered layer.

    >>> formula_bytes([1000, 24], unclustered=10, clusters=4)
    328.0
    """
    bits = math.ceil(math.log2(clusters))
    return sum(clustered) * bits / 8 + 4 * clusters * len(clustered) + 4 * unclustered


def schema_bytes(schema: Schema, clusters: int) -> float:
    """Return the formula's size for what is really sent.

    >>> schema_bytes(Schema.of(nn.Linear(100, 10)), clusters=4)
    306.0
    """
    clustered = [entry.size for entry in schema.clustered]
    return formula_bytes(clustered, schema.size - sum(clustered), clusters)


def paper_bytes(model: nn.Module, clusters: int | None = None) -> float:
    """Return a message's size as the paper's Table 2 counts it; dense if `clusters` is None.

    The table counts BatchNorm's parameters, and its authors leave ResNet's `downsample` convolutions unclustered.

    >>> from pushcen.models import LeNet
    >>> round(10 * paper_bytes(LeNet(10), clusters=32) / 1e6, 3)         # per push to ten receivers, in MB
    1.622
    """
    total = sum(parameter.numel() for parameter in model.parameters())
    if clusters is None:
        return 4.0 * total
    clustered = [
        module.weight.numel()
        for name, module in model.named_modules()
        if isinstance(module, nn.Conv2d | nn.Linear) and "downsample" not in name.split(".")
    ]
    return formula_bytes(clustered, total - sum(clustered), clusters)


@dataclass(frozen=True)
class Cost:
    """The appendix's analysis of WCP for one model: bits sent, and training against clustering."""

    weights: int
    """Numbers clustered (N)."""
    clusters: int
    """Centroids (k)."""
    samples: int
    """A client's training samples."""
    epochs: int
    """Local epochs (E)."""
    iterations: int
    """Clustering iterations (T)."""
    float_bits: int = 32
    """Bits of a dense number (B)."""

    @property
    def full_bits(self) -> int:
        """C_full = N B."""
        return self.weights * self.float_bits

    @property
    def wcp_bits(self) -> int:
        """C_WCP = (k - 1) B + N ceil(log2 k)."""
        return (self.clusters - 1) * self.float_bits + self.weights * math.ceil(math.log2(self.clusters))

    @property
    def ratio(self) -> float:
        """The compression ratio rho = C_WCP / C_full.

        >>> round(Cost(weights=256_520, clusters=32, samples=480, epochs=1, iterations=3).ratio, 5)
        0.15637
        """
        return self.wcp_bits / self.full_bits

    @property
    def limit(self) -> float:
        """What rho tends to with many weights: ceil(log2 k) / B."""
        return math.ceil(math.log2(self.clusters)) / self.float_bits

    @property
    def training_over_clustering(self) -> float:
        """The ratio of training's operations to clustering's: samples E / (T k).

        >>> Cost(weights=256_520, clusters=32, samples=480, epochs=1, iterations=3).training_over_clustering
        5.0
        """
        return self.samples * self.epochs / (self.iterations * self.clusters)
