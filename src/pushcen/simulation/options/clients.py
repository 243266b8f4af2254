"""What clients do when: how they train, how long that lasts, in pseudo-time; late joins, churn, crashes."""

import json
from dataclasses import dataclass
from pathlib import Path
from random import Random

from pushcen.checks import check_choice, check_flag, check_number, check_order
from pushcen.errors import OptionError
from pushcen.learning import TrainingOptions
from pushcen.simulation.worlds.speeds import LOGNORMAL, check_speeds, factors, read_computation, stragglers
from pushcen.streams import stream
from pushcen.units import PseudoTime

KINDS = ("steps", "constant", "classes", "heavy")


@dataclass(frozen=True)
class ComputeOptions:
    """The time of a compute event, by `kind`.

    - `steps`: the event's optimiser steps times `per_step` (the paper: 0.1).
    - `constant`: `per_event`, whatever there is to do.
    - `classes`: like `steps`, times the factor of the client's speed class, which is drawn once from `classes`.
    - `heavy`: like `steps`, times a factor of 1 or more drawn for each event: Pareto, with `tail` as its exponent.

    Devices differ by `speeds` beside that: a JSON file with the `computation` time of each of some devices, of which
    the median is as fast as usual, or `lognormal:SIGMA`. A share of `stragglers` takes `slowdown` times as long.
    """

    kind: str = "steps"
    per_step: PseudoTime = 0.1
    per_event: PseudoTime = 1.0
    classes: tuple[float, ...] = (1.0, 2.0, 4.0)
    tail: float = 2.0
    speeds: str = ""
    stragglers: float = 0.0
    slowdown: float = 5.0

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        check_number("per_step", self.per_step, above=True)
        check_number("per_event", self.per_event, above=True)
        if not self.classes:
            raise OptionError("classes = []: must have at least one factor")
        for factor in self.classes:
            check_number("classes", factor, above=True)
        check_number("tail", self.tail, above=True)
        check_speeds("speeds", self.speeds, ())
        check_number("stragglers", self.stragglers, 0, 1)
        check_number("slowdown", self.slowdown, 1, 1e6)

    def pace(self, client: int, steps: int, seed: int) -> float:
        """Return a client's usual time for one event: all of it, but for the factor of `heavy`.

        >>> round(ComputeOptions().pace(client=0, steps=12, seed=0), 9)
        1.2
        """
        if self.kind == "constant":
            return self.per_event
        factor = stream(seed, "speed", client).choice(self.classes) if self.kind == "classes" else 1.0
        return steps * self.per_step * factor

    def factors(self, clients: int, seed: int) -> list[float]:
        """Return how many times as long as usual each client's events take.

        >>> ComputeOptions(stragglers=0.25, slowdown=3.0).factors(4, seed=0)
        [1.0, 3.0, 1.0, 1.0]
        """
        slower = stragglers(self.stragglers, self.slowdown, clients, seed, "compute")
        if not self.speeds:
            return slower
        if self.speeds.startswith(LOGNORMAL):
            own = [1 / factor for factor in factors(self.speeds, clients, seed, "computation")]
        else:
            own = read_computation(self.speeds, clients, seed)
        return [factor * slow for factor, slow in zip(own, slower, strict=True)]

    def time(self, pace: float, rng: Random) -> float:
        """Return the time of one event of a client with this pace; `rng` is the client's own, for this alone."""
        return pace * rng.paretovariate(self.tail) if self.kind == "heavy" else pace


@dataclass(frozen=True)
class ParticipationOptions:
    """Who is there when.

    A share `delayed` of the clients joins late, at times uniform over [`earliest`, `latest`]; or `joins` names a JSON
    file with a time for each late client: `{"3": 12.5, "7": 20}`. A share `churn` of all clients comes and goes: it is
    there for `stay` on average, then away for `away` on average (both exponential), and keeps its model and mass
    meanwhile; with `farewell` it hands its mass over before it goes, and returns as one who joins. A share `crashes`
    of all clients crashes every `between` on average, loses whatever was not committed, and is back after `repair`.
    In place of `churn`, `trace` names a file with the times at which devices came and went (FedScale's format, as JSON
    or npz): each client is there as one of them was, by the seed, over and over again.
    """

    delayed: float = 0.0
    earliest: PseudoTime = 10.0
    latest: PseudoTime = 33.0
    joins: str = ""
    churn: float = 0.0
    stay: PseudoTime = 10.0
    away: PseudoTime = 5.0
    farewell: bool = False
    crashes: float = 0.0
    between: PseudoTime = 10.0
    repair: PseudoTime = 1.0
    trace: str = ""

    def __post_init__(self) -> None:
        for name in ("delayed", "churn", "crashes"):
            check_number(name, getattr(self, name), 0, 1)
        for name in ("stay", "away", "between", "repair"):
            check_number(name, getattr(self, name), above=True)
        check_number("earliest", self.earliest)
        check_number("latest", self.latest)
        check_order("earliest", self.earliest, "latest", self.latest)
        check_flag("farewell", self.farewell)
        if self.joins and self.delayed:
            raise OptionError(f"delayed = {self.delayed!r}: must be 0 where joins says who comes when")
        if self.trace and self.churn:
            raise OptionError(f"churn = {self.churn!r}: must be 0 where trace = {self.trace!r} says who is there when")

    def join_times(self, clients: int, seed: int) -> dict[int, float]:
        """Return the clients that join late, and when: the same for all methods.

        >>> times = ParticipationOptions(delayed=0.2).join_times(10, seed=0)
        >>> len(times), all(10 <= time <= 33 for time in times.values())
        (2, True)
        """
        if self.joins:
            return read_joins(Path(self.joins), clients)
        rng = stream(seed, "join times")
        late = sorted(rng.sample(range(clients), round(self.delayed * clients)))
        return {client: rng.uniform(self.earliest, self.latest) for client in late}

    def churning(self, clients: int, seed: int) -> set[int]:
        """Return the clients that come and go."""
        return set(stream(seed, "churn").sample(range(clients), round(self.churn * clients)))

    def crashing(self, clients: int, seed: int) -> set[int]:
        """Return the clients that crash now and then."""
        return set(stream(seed, "crashes").sample(range(clients), round(self.crashes * clients)))


def client_training(training: TrainingOptions, client: int, seed: int) -> TrainingOptions:
    """Return how a client trains: `training.per_client` decided, each range by a stream of its own.

    >>> from pushcen.learning import PerClientOptions
    >>> training = TrainingOptions(per_client=PerClientOptions(epochs="1..9", lr=(0.1, 0.01)))
    >>> [(own.epochs, own.lr) for own in (client_training(training, client, seed=0) for client in range(3))]
    [(7, 0.1), (9, 0.01), (1, 0.1)]
    """
    return training.of_client(client, lambda option: stream(seed, "training", option, client))


def read_joins(path: Path, clients: int) -> dict[int, float]:
    """Read a table of join times from a JSON file: `{"3": 12.5, "7": 20}`."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"participation.joins = {str(path)!r}: {error.strerror}") from error
    except ValueError as error:
        raise OptionError(f"participation.joins = {str(path)!r}: must be a JSON file: {error}") from error
    if not isinstance(table, dict):
        raise OptionError(f"participation.joins = {str(path)!r}: must be an object of client: time")
    names = {str(client) for client in range(clients)}
    for client, time in table.items():
        if client not in names:
            raise OptionError(
                f"participation.joins = {str(path)!r}: client {client!r}: must be a number from 0 to {clients - 1}"
            )
        check_number(f"participation.joins = {str(path)!r}: client {client}", time)
    return {int(client): float(table[client]) for client in sorted(table, key=int)}
