"""From a model to one message and back: `encode`, `Payload.parse`, `accumulate`, `decode`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import nn

from pushcen.codec import cpu
from pushcen.codec.accumulator import Accumulator, Weight, check_weight
from pushcen.codec.centroids import Centroids
from pushcen.codec.clustering import flatten
from pushcen.codec.cpu import Bytes
from pushcen.codec.dense import Dense
from pushcen.codec.fragment import Fragment
from pushcen.codec.reference import Reference
from pushcen.codec.schema import Entry, Schema
from pushcen.codec.wire import HEADER, NO_REFERENCE, Header, read_header, write_header
from pushcen.errors import OptionError, PayloadError


class Codec(Protocol):
    """How a model's numbers become the body of a payload: `Centroids`, `Dense` or `Fragment`."""

    @property
    def code(self) -> int:
        """The codec's number on the wire."""

    def size(self, schema: Schema) -> int:
        """Return the length of the body in bytes."""

    def write(self, rows: Iterable[tuple[Entry, torch.Tensor]], schema: Schema, body: Bytes) -> None:
        """Encode the rows into `body`, behind which there are `cpu.SPARE` bytes more."""

    def check(self, schema: Schema, body: Bytes) -> None:
        """Refuse a body of the right length that no encoder makes."""

    def add(self, schema: Schema, body: Bytes, weight: Weight, into: Accumulator, reference: Reference | None) -> None:
        """Add `weight` times what the body holds."""


@dataclass(frozen=True, eq=False)
class Payload:
    """A well-formed message: what `encode` made, or what `parse` has checked from end to end."""

    data: bytes
    """The bytes that travel."""
    schema: Schema
    codec: Codec
    reference: bytes | None
    """The fingerprint of the model that this is the difference to; None if it stands alone."""

    @classmethod
    def parse(cls, data: bytes, schema: Schema) -> "Payload":
        """Check bytes from anywhere, before anything large is allocated; refuse them whole with a `PayloadError`.

        >>> Payload.parse(b"PCEN", Schema.of(nn.Linear(2, 1)))
        Traceback (most recent call last):
        pushcen.errors.PayloadError: a payload of 4 bytes is cut off: the header alone has 56
        """
        data = bytes(data)  # what was checked cannot change any more; no copy if it is bytes already
        header = read_header(data)
        if header.schema != schema.fingerprint:
            raise PayloadError(
                f"the payload is for schema {header.schema.hex()} and this model has {schema.fingerprint.hex()}: "
                "compare both sides' `print(Schema.of(model))`"
            )
        body = np.frombuffer(data, np.uint8)[HEADER:]
        codec = _codec(header, body)
        if body.size != codec.size(schema):
            raise PayloadError(f"the body has {body.size} bytes; {codec} with this schema has {codec.size(schema)}")
        codec.check(schema, body)
        return cls(data, schema, codec, None if header.reference == NO_REFERENCE else header.reference)

    @property
    def body(self) -> Bytes:
        """What follows the header."""
        return np.frombuffer(self.data, np.uint8)[HEADER:]

    def tables(self) -> dict[str, torch.Tensor]:
        """Return each clustered layer's centroids, by name; empty for codecs that have none."""
        if not isinstance(self.codec, Centroids):
            return {}
        rows = self.codec.tables(self.schema, self.body)
        return {entry.name: torch.from_numpy(row) for entry, row in zip(self.schema.clustered, rows, strict=True)}

    def __len__(self) -> int:
        return len(self.data)


def encode(
    model: nn.Module,
    codec: Codec | None = None,
    *,
    schema: Schema | None = None,
    reference: Reference | None = None,
) -> Payload:
    """Make a message of what `model` shares; by default with 32 centroids a layer.

    `schema` says what is shared (`Schema.of(model, share=...)`; make it once and keep it). With a `reference`, the
    message holds the difference to that model, which the receiver has too.

    >>> model = nn.Linear(100, 10)
    >>> len(encode(model, Dense())), len(encode(model, Centroids(clusters=4)))
    (4096, 359)
    """
    codec = codec or Centroids()
    schema = schema or Schema.of(model)
    if reference is not None:
        schema.check_same(reference.schema)
    length = payload_size(schema, codec)
    data = np.empty(length + cpu.SPARE, np.uint8)
    codec.write(_rows(model, schema, reference), schema, data[HEADER:])
    fingerprint = None if reference is None else reference.fingerprint
    clusters = codec.clusters if isinstance(codec, Centroids) else 0
    header = Header(codec.code, clusters, length, schema.fingerprint, fingerprint or NO_REFERENCE)
    write_header(header, data[:length].data)
    return Payload(data[:length].tobytes(), schema, codec, fingerprint)


def payload_size(schema: Schema, codec: Codec) -> int:
    """Return the exact length that `encode` will give, without encoding.

    >>> payload_size(Schema.of(nn.Linear(100, 10)), Centroids(clusters=4))
    359
    """
    return HEADER + codec.size(schema)


def accumulate(
    payload: Payload | bytes, weight: Weight, into: Accumulator, *, reference: Reference | None = None
) -> None:
    """Add `weight` times the message's model to `into`, straight from its bytes; refuse it before anything changes.

    >>> model = nn.Linear(100, 10)
    >>> into = Accumulator.zeros(Schema.of(model))
    >>> accumulate(encode(model, Dense()), 3, into)
    >>> torch.equal(into.total[:1000], 3 * model.weight.detach().flatten())
    True
    """
    check_weight(weight)
    if not isinstance(payload, Payload):
        payload = Payload.parse(payload, into.schema)
    elif payload.schema is not into.schema:
        into.schema.check_same(payload.schema)
    given = None if reference is None else reference.fingerprint
    if payload.reference != given:
        raise PayloadError(f"the payload {_to(payload.reference)}, and the reference given {_to(given)}")
    payload.codec.add(payload.schema, payload.body, weight, into, reference)


def decode(payload: Payload, *, reference: Reference | None = None) -> dict[str, torch.Tensor]:
    """Return the message's tensors by name, in the dtypes of the model that sent them.

    >>> model = nn.Linear(100, 10)
    >>> decode(encode(model))["weight"].unique().numel() <= 32
    True
    """
    if isinstance(payload.codec, Fragment):
        raise OptionError("a fragment is only a part of a model: use accumulate, which knows what it covers")
    into = Accumulator.zeros(payload.schema)
    accumulate(payload, 1, into, reference=reference)
    return {entry.name: into.total[place].view(entry.shape).to(entry.dtype) for entry, place in payload.schema.slices}


def _rows(model: nn.Module, schema: Schema, reference: Reference | None) -> Iterator[tuple[Entry, torch.Tensor]]:
    """Give each entry with its numbers in a row of float32, less the reference's."""
    for (entry, place), tensor in zip(schema.slices, schema.tensors(model), strict=True):
        row = flatten(tensor)
        if row.device.type == "mps":  # which has no float64, for sums
            row = row.cpu()
        yield entry, row if reference is None else row - reference.row[place].to(row.device)


def _codec(header: Header, body: Bytes) -> Codec:
    if header.codec == Centroids.code:
        if not 2 <= header.clusters <= 256:
            raise PayloadError(f"the payload says that it has {header.clusters} clusters; there are 2 to 256")
        return Centroids(header.clusters)
    if header.clusters:
        raise PayloadError(f"codec {header.codec} has no clusters, and the payload says {header.clusters}")
    if header.codec in (2, 3):
        return Dense("float32" if header.codec == 2 else "float16")
    if header.codec == Fragment.code:
        return Fragment.read(body)
    raise PayloadError(f"the payload has codec {header.codec}, which this pushcen does not know")


def _to(reference: bytes | None) -> str:
    return "stands alone" if reference is None else f"is the difference to {reference.hex()}"
