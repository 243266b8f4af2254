"""What a codec is: how a model's numbers become the body of a payload, and how that is added to a sum.

A class of one's own needs nothing but this base (docs/adding-a-codec.md). It is known wherever it is imported, by a
fingerprint of its name which every payload carries; a name that comes from outside is never imported.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch

from pushcen.codec import numba_kernels
from pushcen.codec.accumulator import Accumulator, Weight
from pushcen.codec.bins import LIMIT
from pushcen.codec.codebook import Values
from pushcen.codec.numba_kernels import Bytes
from pushcen.codec.reference import Reference
from pushcen.codec.schema import Entry, Schema
from pushcen.codec.wire import Header
from pushcen.errors import PayloadError

OWN = range(128, 256)
"""The numbers on the wire that are free for codecs that are not part of pushcen."""
MARK = 16
"""Bytes of a name's fingerprint."""

BEYOND = "the payload has a value that is not finite, or larger than 2**60"
"""What is said of such a payload."""

Rows = Iterable[tuple[Entry, torch.Tensor]]
"""Each tensor that travels, as one row of float32."""

own_codecs: dict[bytes, type["Codec"]] = {}
"""The codecs that are not part of pushcen and have been imported here, by mark."""


@dataclass(frozen=True)
class Codec:
    """How messages are written and read. A subclass is a frozen dataclass whose fields are its options.

    Two codecs are equal if they understand each other's messages; what only the sender needs is left out of that
    (`field(compare=False)`). Whatever may be asked of a codec later has a default here.
    """

    name: ClassVar[str]
    """By which it is chosen: `module:Class`, or a plain name for those that are part of pushcen."""
    mark: ClassVar[bytes] = b""
    """What the body of its payloads begins with: a fingerprint of its name; nothing for those of pushcen."""

    def __init_subclass__(cls, *, plain_name: str = "") -> None:
        super().__init_subclass__()
        cls.name = plain_name or f"{cls.__module__}:{cls.__qualname__}"
        cls.mark = b"" if plain_name else hashlib.sha256(cls.name.encode()).digest()[:MARK]
        if cls.mark:
            own_codecs[cls.mark] = cls

    @property
    def code(self) -> int:
        """Its number on the wire, 128 to 255. Another number is another format of the same name."""
        return OWN.start

    @property
    def parameter(self) -> int:
        """Its own two bytes of the header: a whole number up to 65,535."""
        return 0

    @property
    def whole(self) -> bool:
        """Whether a message holds every coordinate. If not, `cover` must say what it does hold."""
        return True

    @property
    def from_start(self) -> bool:
        """Whether what is sent is the difference to the model that all clients start from."""
        return False

    @property
    def feedback(self) -> bool:
        """Whether what one message leaves out is added to the sender's next."""
        return False

    @property
    def varies(self) -> bool:
        """Whether the size of a message depends on its numbers; before it is `fitted`, a size is the most."""
        return False

    def fitted(self, rows: Rows, schema: Schema) -> Self:  # noqa: ARG002
        """Return the codec that writes these rows, whose size is that of the message."""
        return self

    @classmethod
    def read(cls, header: Header, body: Bytes) -> Self:  # noqa: ARG003
        """Return the codec that wrote a body, of which nothing is checked but that it arrived as it was sent."""
        return cls()

    def size(self, schema: Schema) -> int:
        """Return the length of the body in bytes."""
        raise NotImplementedError

    def most(self, schema: Schema) -> int | None:  # noqa: ARG002
        """Return the length of the longest body, where bodies of equal codecs differ in length; None: they do not."""
        return None

    def write(self, rows: Rows, schema: Schema, body: Bytes) -> None:
        """Encode the rows into `body`, behind which there are `numba_kernels.SPARE` bytes more."""
        raise NotImplementedError

    def check(self, schema: Schema, body: Bytes) -> None:
        """Refuse a body of the right length that no encoder makes: whatever passes is added without a look."""
        raise NotImplementedError

    def looks_at(self, schema: Schema) -> int:
        """Return how many bytes of a body `check` looks at."""
        return self.size(schema)

    def add(self, schema: Schema, body: Bytes, weight: Weight, into: Accumulator) -> None:
        """Add `weight` times the numbers of the body to `into.total`."""
        raise NotImplementedError

    def cover(self, weight: Weight, into: Accumulator, reference: Reference | None) -> None:
        """Add `weight` times the reference, if there is one, and count the weight of what `add` has added."""
        if reference is not None:
            into.owe(reference, weight)
        into.weight += weight

    def with_left(self, rows: Rows, schema: Schema, left: torch.Tensor) -> Iterator[tuple[Entry, torch.Tensor]]:
        """Yield the rows with what earlier messages left out, in `left`, which holds what is wanted after this."""
        for (_, place), (entry, row) in zip(schema.slices, rows, strict=True):
            yield entry, left[place].add_(row.to(left.device))

    def tables(self, schema: Schema, body: Bytes) -> Values:  # noqa: ARG002
        """Return the centroids, a row for each clustered layer; no row if it has none."""
        return np.zeros((0, 0), np.float32)


def check_values(values: Values) -> None:
    """Refuse numbers that are not finite, or so large that sums could overflow.

    >>> check_values(np.array([1, np.inf], np.float32))
    Traceback (most recent call last):
    pushcen.errors.PayloadError: the payload has a value that is not finite, or larger than 2**60
    """
    if numba_kernels.largest_value(values) > LIMIT:
        raise PayloadError(BEYOND)
