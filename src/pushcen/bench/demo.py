"""The codec's demonstration: two models, before and after."""

from dataclasses import dataclass

import torch
from torch import nn

from pushcen.bench.timing import best_seconds
from pushcen.bench.weights import trained_lenet, trained_resnet18
from pushcen.codec import Accumulator, Centroids, Schema, accumulate, decode, encode


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
    """Train both models a little, encode and merge them on one thread."""
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
