"""One seed, split into named streams of random numbers. Nothing in pushcen reads a global generator.

A stream depends on the seed and its names alone: adding a client, or drawing more in one place, moves no other stream.
"""

import hashlib
from collections.abc import Sequence
from random import Random
from typing import Any


def seed_of(seed: int, *names: str | int) -> int:
    """Return the seed of the stream of these names, from 0 to 2**63 - 1.

    >>> seed_of(1, "compute", 3) == seed_of(1, "compute", 3), seed_of(1, "compute", 3) == seed_of(2, "compute", 3)
    (True, False)
    """
    text = "\0".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1


def stream(seed: int, *names: str | int) -> Random:
    """Return the random generator of these names.

    >>> stream(1, "join times").random() == stream(1, "join times").random()
    True
    """
    return Random(seed_of(seed, *names))


def restore_stream(rng: Random, state: Sequence[Any]) -> None:
    """Set a stream to a state that `getstate` returned, also if that has been written as JSON meanwhile.

    >>> import json
    >>> rng, other = Random(1), Random(2)
    >>> restore_stream(other, json.loads(json.dumps(rng.getstate())))
    >>> rng.random() == other.random()
    True
    """
    version, internal, gauss = state
    rng.setstate((version, tuple(internal), gauss))
