"""One seed, split into named streams of random numbers. Nothing in pushcen reads a global generator.

A stream depends on the seed and its names alone: adding a client, or drawing more in one place, moves no other stream.
"""

import hashlib
from random import Random


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
