"""Asynchronous, decentralized federated learning: no server, no rounds, small messages.

The parts, each usable alone: `pushcen.codec` turns a PyTorch model into a small message and back, `pushcen.protocol`
says who owes whom how much weight, `pushcen.data` loads data and divides it among clients, `pushcen.simulation` lets
many clients train together. `pushcen.simulate` and `pushcen.compare` are the short way to the last. Importing this
package costs next to nothing: what is heavy is imported when it is used.
"""

from pushcen.api import Comparison, Result, compare, simulate
from pushcen.errors import PushcenError

__version__ = "0.1.0"
__all__ = ["Comparison", "PushcenError", "Result", "__version__", "compare", "simulate"]
