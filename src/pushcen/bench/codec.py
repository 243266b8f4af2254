"""How fast and how good the codec is, on trained weights, everything on one thread; and its demonstration."""

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import nn

from pushcen.bench.common import best_seconds, trained_lenet, trained_resnet18
from pushcen.bench.plain import least_error, lloyd
from pushcen.codec import Accumulator, Centroids, Lean, Payload, Schema, accumulate, cluster, decode, encode
from pushcen.codec.blocks import Layout

_SAMPLE = 1500


@dataclass(frozen=True)
class CodecFigures:
    """What `pushcen bench codec --json` prints."""

    weights: int
    """Numbers that travel."""
    encode_speedup_vs_plain: float
    """Time of plain Lloyd (distance matrix, 3 iterations, random start) over that of encoding to final bytes."""
    distortion_vs_optimum: dict[str, float]
    """Mean squared error over the exact optimum's with a held zero, by K, on samples of every layer."""
    distortion_vs_plain: float
    """Mean squared error over that of plain Lloyd, at K = 32."""
    zero_in_the_middle: dict[str, float]
    """Share of the layers whose zero has index K // 2, by K."""
    encode_vs_memcpy: float
    """Time of encoding to final bytes, over copying the same weights once."""
    accumulate_vs_dense_add: float
    """Time of merging one packed message, over adding one dense float32 model."""
    check_vs_dense_add: float
    """Time of checking a message when it arrives, from end to end, over the same."""
    bits_per_weight: float
    """Length of the whole message over the number of clustered weights."""
    entropy_bits_per_weight: float
    """The entropy of the indices: what an ideal coder of single indices would need."""
    lean: dict[str, dict[str, float]]
    """Of `Lean`, by bits: what the coder takes over the entropy of its levels, and the three times as above."""

    def as_dict(self) -> dict[str, object]:
        """Return the figures by name."""
        return asdict(self)


def measure(turns: int = 20) -> CodecFigures:
    """Measure everything, the quick parts as the best of `turns`. Takes half a minute."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _measure(turns)
    finally:
        torch.set_num_threads(before)


def _measure(turns: int) -> CodecFigures:
    model = trained_resnet18()
    schema = Schema.of(model)
    codec = Centroids(clusters=32)
    tensors = [tensor.detach() for tensor in schema.tensors(model)]
    layers = {entry.name: t for entry, t in zip(schema.entries, tensors, strict=True) if entry.clustered}
    copies = [torch.empty_like(tensor) for tensor in tensors]
    payload = encode(model, codec, schema=schema)
    dense = torch.cat([tensor.flatten() for tensor in tensors])
    into = Accumulator.zeros(schema)
    total = torch.zeros_like(dense)

    def copy() -> None:
        for target, tensor in zip(copies, tensors, strict=True):
            target.copy_(tensor)

    copying, encoding, adding, merging, checking = best_seconds(
        copy,
        lambda: encode(model, codec, schema=schema),
        lambda: total.add_(dense),
        lambda: accumulate(payload, 1, into),
        lambda: Payload.parse(payload.data, schema),
        turns=turns,
    )
    plain: dict[str, torch.Tensor] = {}
    generator = torch.Generator().manual_seed(0)
    (lloyding,) = best_seconds(
        lambda: plain.update({name: lloyd(layer, 32, generator) for name, layer in layers.items()}), turns=1
    )
    ours = decode(payload)
    return CodecFigures(
        weights=schema.size,
        encode_speedup_vs_plain=lloyding / encoding,
        distortion_vs_optimum={str(k): _vs_optimum(layers, k) for k in (4, 8, 16, 32)},
        distortion_vs_plain=_squared_error(layers, ours) / _squared_error(layers, plain),
        zero_in_the_middle={str(k): _share_in_the_middle(layers, k) for k in (4, 8, 16, 32)},
        encode_vs_memcpy=encoding / copying,
        accumulate_vs_dense_add=merging / adding,
        check_vs_dense_add=checking / adding,
        bits_per_weight=8 * len(payload) / sum(layer.numel() for layer in layers.values()),
        entropy_bits_per_weight=_entropy(layers, 32),
        lean={f"{bits:g}": _lean(model, schema, bits, copy, lambda: total.add_(dense), turns) for bits in (0.3, 1, 2)},
    )


def _lean(
    model: nn.Module, schema: Schema, bits: float, copy: Callable[[], None], add: Callable[[], object], turns: int
) -> dict[str, float]:
    codec, into = Lean(bits), Accumulator.zeros(schema)
    payload = encode(model, codec, schema=schema)
    copying, encoding, adding, merging, checking = best_seconds(
        copy,
        lambda: encode(model, codec, schema=schema),
        add,
        lambda: accumulate(payload, 1, into),
        lambda: Payload.parse(payload.data, schema),
        turns=turns,
    )
    layout = Layout.of(schema)
    _, end = layout.read(payload.body)
    decoded = decode(payload)
    tensors = [decoded[entry.name] for entry in schema.entries]
    entropy = 0.0
    for block in layout.blocks:
        levels = torch.cat([tensors[at].flatten() for at, _ in block])
        shares = np.unique(levels.numpy(), return_counts=True)[1] / levels.numel()
        entropy -= levels.numel() * float((shares * np.log2(shares)).sum())
    return {
        "bits_over_entropy": 8 * (end - layout.begin) / entropy,
        "encode_vs_memcpy": encoding / copying,
        "accumulate_vs_dense_add": merging / adding,
        "check_vs_dense_add": checking / adding,
    }


def _squared_error(layers: dict[str, torch.Tensor], decoded: dict[str, torch.Tensor]) -> float:
    return sum(float((layer - decoded[name]).double().square().sum()) for name, layer in layers.items())


def _vs_optimum(layers: dict[str, torch.Tensor], clusters: int) -> float:
    """Return the error over the optimum's, on samples small enough for the exact optimum, weighted by layer size."""
    generator = torch.Generator().manual_seed(0)
    ours = optimum = 0.0
    for layer in layers.values():
        sample = layer.flatten()[torch.randint(layer.numel(), (_SAMPLE,), generator=generator)]
        error = (cluster(sample, clusters).decode() - sample).double().square().mean()
        ours += layer.numel() * float(error)
        optimum += layer.numel() * least_error(sample.numpy(), clusters)
    return ours / optimum


def _share_in_the_middle(layers: dict[str, torch.Tensor], clusters: int) -> float:
    return sum(cluster(layer, clusters).zero_index == clusters // 2 for layer in layers.values()) / len(layers)


def _entropy(layers: dict[str, torch.Tensor], clusters: int) -> float:
    bits = 0.0
    for layer in layers.values():
        counts = np.bincount(cluster(layer, clusters).indices.numpy().ravel())
        share = counts[counts > 0] / counts.sum()
        bits -= layer.numel() * float((share * np.log2(share)).sum())
    return bits / sum(layer.numel() for layer in layers.values())


@dataclass(frozen=True)
class Encoded:
    """One model's line in the demonstration."""

    model: str
    numbers: int
    dense_bytes: int
    encoded_bytes: int
    distortion: float
    encode_ms: float
    merge_ms: float


def encode_models(codec: Centroids) -> list[Encoded]:
    """Train both models a little, encode and merge them on one thread; return a line for each."""
    models = {"LeNet": trained_lenet(), "ResNet-18": trained_resnet18()}
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [_encoded(name, model, codec) for name, model in models.items()]
    finally:
        torch.set_num_threads(before)


def _encoded(name: str, model: nn.Module, codec: Centroids) -> Encoded:
    schema = Schema.of(model)
    payload = encode(model, codec, schema=schema)
    into = Accumulator.zeros(schema)
    encoding, merging = best_seconds(
        lambda: encode(model, codec, schema=schema), lambda: accumulate(payload.data, 1, into), turns=5
    )
    decoded = decode(payload)
    error = square = 0.0
    for entry, tensor in zip(schema.entries, schema.tensors(model), strict=True):
        if entry.clustered:
            error += float((decoded[entry.name] - tensor.detach()).square().sum())
            square += float(tensor.detach().square().sum())
    return Encoded(name, schema.size, 4 * schema.size, len(payload), error / square, 1e3 * encoding, 1e3 * merging)
