"""The options of a peer on a real network: how long it waits, how much it takes in, how much it keeps."""

import math
from dataclasses import dataclass, fields

from pushcen.checks import check_count, check_flag, check_number, check_order
from pushcen.units import Kibibytes, Mebibytes, Seconds


@dataclass(frozen=True)
class RuntimeOptions:
    """The section `runtime` of a config. Times are in seconds, or have a unit: "2 min".

    >>> RuntimeOptions(chunk_kb=0)
    Traceback (most recent call last):
    pushcen.errors.OptionError: chunk_kb = 0: must be a whole number, 1 or more
    """

    view: int = 20
    """How many neighbours a peer pushes to at any time; the view changes slowly."""
    known: int = 64
    """How many peers it knows of, and ever has links to, at most."""
    gossip_every: Seconds = 5.0
    """How often it exchanges news with one neighbour."""
    hello_every: Seconds = 10.0
    """How often it makes sure of a neighbour that it has not heard from."""
    hello_timeout: Seconds = 2.0
    """How long a neighbour may take to answer a hello."""
    handshake_timeout: Seconds = 10.0
    """How long a connection may take to show a certificate; one that does not is closed."""
    keepalive: Seconds = 30.0
    """How often a silent connection is tried, so that no NAT on the way forgets it; 1 or more."""
    patience: Seconds = 0.25
    """How long the end of a compute event waits for hellos that are still out; who misses it is left out."""
    push_timeout: Seconds = 30.0
    """How long a push may take, and how long it may stand still."""
    retry_first: Seconds = 1.0
    """When a neighbour that does not answer is tried again; each time after twice as long."""
    retry_last: Seconds = 60.0
    """The longest time between two tries."""
    give_up: int = 12
    """After so many tries in vain a neighbour is left out of the view, until it is heard of again."""
    chunk_kb: Kibibytes = 1024
    """How much of a payload goes into one message."""
    memory_mb: Mebibytes = 1024
    """How much payload may be arriving or leaving at a time, all neighbours together."""
    pushes_per_second: float = 50.0
    """What one neighbour may send on average; three seconds' worth at once."""
    calls_per_second: float = 50.0
    """The same for hellos and gossip."""
    evaluate_every: int = 5
    """Evaluate at every n-th compute event; 0: never."""
    optimiser_every: int = 10
    """Save the optimiser's state at every n-th compute event; 0: never."""
    pause: Seconds = 0.0
    """The least time between the beginnings of two compute events."""
    quiet_after: Seconds = 600.0
    """How long nothing may come from others, or no compute event end, before log and status say that something is
    wrong; where compute events are long, some of them."""
    stop_after: Seconds = 0.0
    """Train for so long, from the first compute event on, and then only answer others; 0: until it is stopped."""
    stop_without_gain: int = 0
    """Train until the score on its own test data was not bettered for so many compute events; 0: for ever."""
    stop_at: float | None = None
    """Train until the score, as it is shown (90 for 90 %), is reached at two evaluations in a row."""
    keep_best: int = 1
    """How many of the best weights, by its own test data, are kept beside the newest."""
    hosts: int = 2
    """Through how many members a peer that does not listen is reached."""
    tunnels: int = 64
    """How many streams one member may have through this peer; 0: it hosts nobody."""
    tunnel_mb_per_second: float = 256.0
    """What one member may send through this peer, in MB a second."""
    start_with: int = 0
    """How many neighbours must have answered before the first compute event."""
    start_timeout: Seconds = 60.0
    """How long to wait for them."""
    watched: bool = True
    """Whether other members may see how this peer is, as `pushcen watch` shows it (docs/watch.md)."""

    def __post_init__(self) -> None:
        may_be_zero = {
            "patience", "evaluate_every", "optimiser_every", "pause", "stop_after", "stop_without_gain", "keep_best",
            "start_with", "start_timeout", "tunnels",
        }  # fmt: skip
        for field in fields(self):
            name, value, zero = field.name, getattr(self, field.name), field.name in may_be_zero
            if field.default is None:
                if value is not None:
                    check_number(name, value, -math.inf)
            elif isinstance(field.default, bool):
                check_flag(name, value)
            elif isinstance(field.default, int):
                check_count(name, value, 0 if zero else 1)
            else:
                check_number(name, value, 0 if zero else 0.001)
        check_number("keepalive", self.keepalive, 1)  # who pings more often is hung up on
        check_order("view", self.view, "known", self.known)
