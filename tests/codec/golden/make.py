"""Write the golden payloads anew: `python -m tests.codec.golden.make`. Only for a new version of the format."""

import pathlib

from pushcen.codec import Centroids, Cut, Dense, Fragment, Lean, Modulo, Reference, TopK, WithMass, encode
from tests.codec.models import example

HERE = pathlib.Path(__file__).parent
PAYLOADS = {
    "centroids-k5.bin": (Centroids(5), False),
    "centroids-k32.bin": (Centroids(32), False),
    "centroids-k4-difference.bin": (Centroids(4), True),
    "dense-float32.bin": (Dense(), False),
    "dense-float16.bin": (Dense("float16"), False),
    "fragment-1-of-3.bin": (Fragment(1, Cut(3, cut_seed=5)), False),
    "lean-4-bits-difference.bin": (Lean(4.0), True),
    "lean-3-bits.bin": (Lean(3.0), False),
    "top-k-2-percent-difference.bin": (TopK(0.02), True),
    "top-k-50-percent-difference.bin": (TopK(0.5), True),
    "with-mass-centroids-k32.bin": (WithMass(Centroids(32), 0.375), False),
    "modulo-3-bits.bin": (Modulo(3), False),
}


def reference():
    """The example with every bias raised by a half."""
    model = example()
    model[0].bias.data += 0.5
    model[3].bias.data += 0.5
    return Reference.of(model)


def payload(name):
    codec, differs = PAYLOADS[name]
    return encode(example(), codec, reference=reference() if differs else None)


if __name__ == "__main__":
    for name in PAYLOADS:
        (HERE / name).write_bytes(payload(name).data)
