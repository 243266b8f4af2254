"""Asynchronous, decentralized federated learning: no server, no rounds, small messages.

The parts, each usable alone: `pushcen.codec` turns a PyTorch model into a small message and back, `pushcen.protocol`
says who owes whom how much weight, `pushcen.data` loads data and divides it among clients. This package itself holds
only the version and the errors, so that importing it costs nothing.
"""

from pushcen.errors import PushcenError

__version__ = "0.1.0"
__all__ = ["PushcenError", "__version__"]
