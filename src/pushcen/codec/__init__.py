"""A PyTorch model becomes a small message, and many messages become one mean.

Each weight layer travels as K centroids, one of them zero, and an index of log2 K bits for each weight: at K = 32 about
a sixth of the size. Merging reads the packed bytes directly, so that no neighbour's model is ever held decoded. Dense
messages and fragments, for other methods, have the same interface. Nothing here knows of peers, mass or training.

    >>> import torch
    >>> from pushcen.codec import Accumulator, Centroids, Payload, Schema, accumulate, encode
    >>> mine, yours = torch.nn.Linear(784, 10), torch.nn.Linear(784, 10)
    >>> schema = Schema.of(mine)                                    # which tensors travel
    >>> data = encode(yours, Centroids(clusters=32)).data           # bytes, ready to send
    >>> len(data), schema.size * 4
    (5121, 31400)
    >>> message = Payload.parse(data, schema)                       # whatever arrives is checked, whole
    >>> merged = Accumulator.zeros(schema)
    >>> merged.add_model(mine, weight=3)
    >>> accumulate(message, 1, into=merged)
    >>> merged.write_mean(mine)                                     # mine = (3 * mine + yours) / 4
"""

from pushcen.codec.accumulator import Accumulator
from pushcen.codec.centroids import Centroids
from pushcen.codec.clustering import Clusters, cluster, largest
from pushcen.codec.codec import Codec, check_values
from pushcen.codec.cut import Cut
from pushcen.codec.dense import Dense
from pushcen.codec.fragment import Fragment
from pushcen.codec.lean import Lean
from pushcen.codec.low_rank import LowRank
from pushcen.codec.modulo import Modulo
from pushcen.codec.payload import (
    Payload,
    accumulate,
    decode,
    decode_row,
    encode,
    encode_row,
    payload_size,
    read_reference,
)
from pushcen.codec.reference import Reference
from pushcen.codec.registry import codecs
from pushcen.codec.schema import Entry, Schema
from pushcen.codec.top_k import TopK
from pushcen.codec.with_mass import WithMass
from pushcen.errors import ModelError, OptionError, PayloadError

__all__ = [
    "Accumulator",
    "Centroids",
    "Clusters",
    "Codec",
    "Cut",
    "Dense",
    "Entry",
    "Fragment",
    "Lean",
    "LowRank",
    "ModelError",
    "Modulo",
    "OptionError",
    "Payload",
    "PayloadError",
    "Reference",
    "Schema",
    "TopK",
    "WithMass",
    "accumulate",
    "check_values",
    "cluster",
    "codecs",
    "decode",
    "decode_row",
    "encode",
    "encode_row",
    "largest",
    "payload_size",
    "read_reference",
]
