"""Asynchronous, decentralized federated learning: no server, no rounds, small messages.

The parts, each usable alone: `pushcen.codec` turns a PyTorch model into a small message and back, `pushcen.protocol`
says who owes whom how much weight, `pushcen.data` loads data and divides it among clients, `pushcen.simulation` runs
many clients in pseudo-time, `pushcen.runtime` is one of them on a real network. What a first script needs is here:

    >>> import pushcen
    >>> world = pushcen.World(pushcen.PushCen(clusters=8), clients=3, horizon=0.5)
    >>> pushcen.simulate(world, evaluation={"every": 0.25}).frame["time"].tolist()
    [0.25, 0.5]

Importing this package costs next to nothing: what is heavy is imported when it is used.
"""

from typing import TYPE_CHECKING

from pushcen.errors import PushcenError
from pushcen.lazy import lazily
from pushcen.version import __version__

if TYPE_CHECKING:
    from pushcen.api import Comparison, Result, compare, simulate
    from pushcen.learning import Task
    from pushcen.methods import PushCen
    from pushcen.simulation import World

__all__ = [
    "Comparison",
    "PushCen",
    "PushcenError",
    "Result",
    "Task",
    "World",
    "__version__",
    "compare",
    "simulate",
]
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "Comparison": "pushcen.api",
            "PushCen": "pushcen.methods",
            "Result": "pushcen.api",
            "Task": "pushcen.learning",
            "World": "pushcen.simulation",
            "compare": "pushcen.api",
            "simulate": "pushcen.api",
        },
    )
