"""From a model, or a row of numbers, to one message and back: `encode`, `Payload.parse`, `accumulate`, `decode`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn

from pushcen.codec import numba_kernels
from pushcen.codec.accumulator import Accumulator, Weight, check_weight
from pushcen.codec.centroids import Centroids
from pushcen.codec.clustering import flatten
from pushcen.codec.codec import OWN, Codec, Rows
from pushcen.codec.numba_kernels import Bytes
from pushcen.codec.reference import Reference
from pushcen.codec.registry import codec_of
from pushcen.codec.schema import Entry, Schema
from pushcen.codec.wire import HEADER, NO_REFERENCE, Header, Incoming, read_header, write_header
from pushcen.errors import OptionError, PayloadError

_NONE: Mapping[bytes, Reference] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Payload:
    """A well-formed message: what `encode` made, or what `parse` has checked from end to end."""

    data: bytes
    """The bytes that travel."""
    schema: Schema
    codec: Codec
    reference: bytes | None
    """The fingerprint of the model that this is the difference to; None if it stands alone."""
    base: Reference | None = None
    """That model, if it is at hand: it stays as long as the message does."""

    @classmethod
    def parse(cls, data: bytes | Incoming, schema: Schema, references: Mapping[bytes, Reference] = _NONE) -> "Payload":
        """Check bytes from anywhere, before anything large is allocated; refuse them whole with a `PayloadError`.

        `references` are models, by fingerprint, that it may be the difference to.

        >>> Payload.parse(b"PCEN", Schema.of(nn.Linear(2, 1)))
        Traceback (most recent call last):
        pushcen.errors.PayloadError: a payload of 4 bytes is cut off: the header alone has 56
        """
        data, header, codec, body = _opened(data, schema)
        codec.check(schema, body)
        reference = None if header.reference == NO_REFERENCE else header.reference
        return cls(data, schema, codec, reference, None if reference is None else references.get(reference))

    @property
    def body(self) -> Bytes:
        """What follows the header and the codec's mark."""
        return np.frombuffer(self.data, np.uint8)[HEADER + len(self.codec.mark) :]

    def tables(self) -> dict[str, torch.Tensor]:
        """Return each clustered layer's centroids, by name; empty for codecs that have none."""
        rows = self.codec.tables(self.schema, self.body)
        return {entry.name: torch.from_numpy(row) for entry, row in zip(self.schema.clustered, rows, strict=False)}

    def __len__(self) -> int:
        return len(self.data)


def bytes_to_check(data: Incoming, schema: Schema) -> int:
    """Return how many bytes `Payload.parse` looks at, beside the header; refuse what it refuses by that."""
    _, _, codec, _ = _opened(data, schema)
    return codec.looks_at(schema)


def encode(
    model: nn.Module,
    codec: Codec | None = None,
    *,
    schema: Schema | None = None,
    reference: Reference | None = None,
    left: torch.Tensor | None = None,
) -> Payload:
    """Make a message of what `model` shares; by default with 32 centroids a layer.

    `schema` says what is shared (`Schema.of(model, share=...)`; make it once and keep it). With a `reference`, the
    message holds the difference to that model, which the receiver has too. `left`, a row of zeros at first, is what
    this sender's earlier messages left out: it is added to this one, and what this one leaves out takes its place.

    >>> from pushcen.codec import Dense
    >>> model = nn.Linear(100, 10)
    >>> len(encode(model, Dense())), len(encode(model, Centroids(clusters=4)))
    (4096, 359)
    """
    codec = codec or Centroids()
    schema = schema or Schema.of(model)
    if reference is not None:
        schema.check_same(reference.schema)
    rows = _rows(model, schema, reference)
    if left is not None:
        if left.shape != (schema.size,):
            raise OptionError(f"left: must be a row of {schema.size} values, not {list(left.shape)}")
        rows = codec.with_left(rows, schema, left)
    payload = _written(rows, codec, schema, reference)
    if left is not None:
        codec.add(schema, payload.body, -1, Accumulator(schema, left))
    return payload


def encode_row(row: torch.Tensor, codec: Codec, schema: Schema) -> Payload:
    """Make a message of numbers in a row of float32 that are no model: a difference, say, or a running sum.

    >>> from pushcen.codec import Dense
    >>> schema = Schema.of(nn.Linear(2, 1))
    >>> decode_row(encode_row(torch.arange(3.0), Dense(), schema)).tolist()
    [0.0, 1.0, 2.0]
    """
    if row.shape != (schema.size,) or row.dtype != torch.float32:
        raise OptionError(f"row: must be {schema.size} values of float32, not {list(row.shape)} of {row.dtype}")
    return _written(((entry, row[place]) for entry, place in schema.slices), codec, schema, None)


def decode_row(payload: Payload, reference: Reference | None = None) -> torch.Tensor:
    """Return the numbers of a message in one row."""
    into = Accumulator.zeros(payload.schema)
    accumulate(payload, 1, into, reference=reference)
    return into.total


def payload_size(schema: Schema, codec: Codec) -> int:
    """Return the exact length that `encode` will give, without encoding.

    >>> payload_size(Schema.of(nn.Linear(100, 10)), Centroids(clusters=4))
    359
    """
    return HEADER + len(codec.mark) + codec.size(schema)


def accumulate(
    payload: Payload | bytes, weight: Weight, into: Accumulator, *, reference: Reference | None = None
) -> None:
    """Add `weight` times the message's model to `into`, straight from its bytes; refuse it before anything changes.

    If it is the difference to another model, that is its `base`, or the `reference` given.

    >>> from pushcen.codec import Dense
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
    reference = reference or payload.base
    given = None if reference is None else reference.fingerprint
    if payload.reference != given:
        raise PayloadError(f"the payload {_to(payload.reference)}, and the reference given {_to(given)}")
    weight = into.make_room(weight)
    payload.codec.add(payload.schema, payload.body, weight, into)
    payload.codec.cover(weight, into, reference)


def decode(payload: Payload, *, reference: Reference | None = None) -> dict[str, torch.Tensor]:
    """Return the message's tensors by name, in the dtypes of the model that sent them.

    >>> model = nn.Linear(100, 10)
    >>> decode(encode(model))["weight"].unique().numel() <= 32
    True
    """
    if not payload.codec.whole:
        raise OptionError(f"{payload.codec} is only a part of a model: use accumulate, which knows what it covers")
    row = decode_row(payload, reference)
    return {entry.name: row[place].view(entry.shape).to(entry.dtype) for entry, place in payload.schema.slices}


def read_reference(payload: Payload) -> Reference:
    """Return the model that a message holds, as what others are differences to; of equal ones there is one.

    >>> model = nn.Linear(100, 10)
    >>> payload = encode(model)
    >>> reference = read_reference(payload)
    >>> torch.equal(reference.row[:1000], decode(payload)["weight"].flatten()), read_reference(payload) is reference
    (True, True)
    """
    found = _READ.get(payload)
    if found is None:
        if payload.reference is not None or not payload.codec.whole:
            raise PayloadError("a reference must be a whole model that stands alone, not a difference or a part of one")
        found = _READ[payload] = Reference.named(payload.schema, decode_row(payload))
    return found


_READ: WeakKeyDictionary[Payload, Reference] = WeakKeyDictionary()


def _opened(data: bytes | Incoming, schema: Schema) -> tuple[bytes, Header, Codec, Bytes]:
    """Return a payload's bytes, its header, its codec and its body, of which only the length has been checked."""
    checksum = data.checksum if isinstance(data, Incoming) else None
    data = data.data if isinstance(data, Incoming) else bytes(data)  # what was checked cannot change any more
    header = read_header(data, checksum)
    if header.schema != schema.fingerprint:
        raise PayloadError(
            f"the payload is for schema {header.schema.hex()} and this model has {schema.fingerprint.hex()}: "
            "compare both sides' `print(Schema.of(model))`"
        )
    body = np.frombuffer(data, np.uint8)[HEADER:]
    codec = codec_of(header, body)
    body = body[len(codec.mark) :]
    if body.size != codec.size(schema):
        raise PayloadError(f"the body has {body.size} bytes; {codec} with this schema has {codec.size(schema)}")
    return data, header, codec, body


def _rows(model: nn.Module, schema: Schema, reference: Reference | None) -> Iterator[tuple[Entry, torch.Tensor]]:
    """Yield each entry with its numbers in a row of float32, less the reference's."""
    for (entry, place), tensor in zip(schema.slices, schema.tensors(model), strict=True):
        row = flatten(tensor)
        if row.device.type == "mps":  # which has no float64, for sums
            row = row.cpu()
        yield entry, row if reference is None else row - reference.row[place].to(row.device)


def _written(rows: Rows, codec: Codec, schema: Schema, reference: Reference | None) -> Payload:
    """Write rows into a message, behind a header."""
    if codec.varies:
        rows = list(rows)
        codec = codec.fitted(rows, schema)
    length, begin = payload_size(schema, codec), HEADER + len(codec.mark)
    data = np.empty(length + numba_kernels.SPARE, np.uint8)
    codec.write(rows, schema, data[begin:])
    fingerprint = None if reference is None else reference.fingerprint
    header = Header(codec.code, codec.parameter, length, schema.fingerprint, fingerprint or NO_REFERENCE)
    data[HEADER:begin] = np.frombuffer(codec.mark, np.uint8)
    read = _read_back(codec, header, data[HEADER:length])
    write_header(header, data[:length].data)
    return Payload(data[:length].tobytes(), schema, read, fingerprint, reference)


def _read_back(codec: Codec, header: Header, body: Bytes) -> Codec:
    """Return the codec as receivers know it; refuse one that is not pushcen's if they could not, by what it sends.

    So a message holds nothing that only its sender needs: a few small tensors that live as long as it does, among the
    large ones of training, kept a third more memory from being used again.
    """
    own = codec.code in OWN
    if own != bool(codec.mark) or not 0 <= codec.parameter <= 0xFFFF:
        raise OptionError(
            f"{codec.name}: code = {codec.code} must be {OWN.start} to {OWN.stop - 1}, "
            f"parameter = {codec.parameter} at most 65,535, and there is no plain name"
        )
    found = codec_of(header, body)
    if found != codec:
        raise OptionError(
            f"{codec.name}: {codec} is read back as {found}; what sets them apart must be in the header's parameter "
            "or in the body, where `read` finds it"
        )
    return found


def _to(reference: bytes | None) -> str:
    return "stands alone" if reference is None else f"is the difference to {reference.hex()}"
