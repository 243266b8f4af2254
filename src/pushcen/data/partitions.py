"""Ways to divide samples among clients, by name, as flwr-datasets divides them.

The three that nearly every run uses are implemented here, row for row the same, since importing flwr-datasets takes as
long as a small run; the others ask its partitioners. Where one of these would leave samples over (shards that do not
come out even, classes that nobody drew), it is asked in another way, or the request is refused with what is possible.
"""

import contextlib
import io
import math
import warnings
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from pushcen.checks import check_choice, check_count, check_number
from pushcen.errors import DataError, OptionError

Rows = NDArray[np.int64]
_DRAWS = 11  # a first one, and ten more


class Partition(Protocol):
    """A way to divide samples among clients."""

    name: ClassVar[str]

    def divide(self, keys: Rows, clients: int, minimum: int, seed: int) -> list[Rows]:
        """Return which of the samples with these keys (labels, or owners) each client gets, or refuse."""
        ...


@dataclass(frozen=True)
class Dirichlet:
    """Each class is divided in proportions drawn from a Dirichlet distribution; the smaller alpha, the more skewed.

    A draw that leaves a client with fewer samples than the minimum is thrown away whole and made again, at most ten
    times. Nothing is balanced afterwards. What rounding down leaves over of each class goes to the last client, which
    therefore has at least one sample of every class.

    >>> Dirichlet(alpha=0)
    Traceback (most recent call last):
    pushcen.errors.OptionError: alpha = 0: must be a number above 0
    """

    name: ClassVar[str] = "dirichlet"
    alpha: float = 0.4

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, above=True)

    def divide(self, keys: Rows, clients: int, minimum: int, seed: int) -> list[Rows]:
        """Draw proportions for each class, as often as it takes."""
        generator = np.random.default_rng(seed)
        classes = [np.flatnonzero(keys == key) for key in np.unique(keys)]
        first: list[int] = []
        for _ in range(_DRAWS):
            parts: list[list[Rows]] = [[] for _ in range(clients)]
            for rows in classes:
                shares = np.cumsum(generator.dirichlet(np.full(clients, float(self.alpha)))) * len(rows)
                for part, some in zip(parts, np.split(rows, shares.astype(int)[:-1]), strict=True):
                    part.append(some)
            sizes = [sum(map(len, part)) for part in parts]
            if min(sizes) >= minimum:
                return [np.concatenate(part) for part in parts]
            first = first or sizes
        raise DataError(
            f"alpha = {self.alpha}: each of {_DRAWS} draws left one of {clients} clients with fewer than {minimum} "
            f"samples (the first left client {int(np.argmin(first))} with {min(first)}); choose a larger alpha, "
            "fewer clients or more samples"
        )


@dataclass(frozen=True)
class Iid:
    """Everybody gets an equal share at random."""

    name: ClassVar[str] = "iid"

    def divide(self, keys: Rows, clients: int, minimum: int, seed: int) -> list[Rows]:  # noqa: ARG002
        """Cut the samples, whose order is random, into equal pieces."""
        return np.array_split(np.arange(len(keys)), clients)


@dataclass(frozen=True)
class Shards:
    """Samples sorted by class are cut into equal pieces, and each client gets so many of them (McMahan et al., 2017).

    Where it does not come out even, the last piece is smaller and some clients get a piece less.

    >>> Shards(per_client=0)
    Traceback (most recent call last):
    pushcen.errors.OptionError: per_client = 0: must be a whole number, 1 or more
    """

    name: ClassVar[str] = "shards"
    per_client: int = 2

    def __post_init__(self) -> None:
        check_count("per_client", self.per_client, 1)

    def divide(self, keys: Rows, clients: int, minimum: int, seed: int) -> list[Rows]:  # noqa: ARG002
        """Ask flwr-datasets' partitioner."""
        from flwr_datasets.partitioner import ShardPartitioner

        size = math.ceil(len(keys) / (clients * self.per_client))
        if (pieces := math.ceil(len(keys) / size)) < clients:
            raise DataError(
                f"per_client = {self.per_client}: {len(keys)} samples in pieces of {size} make {pieces}, too few for "
                f"{clients} clients; choose more pieces a client, or fewer clients"
            )
        by = ShardPartitioner(clients, "key", shard_size=size, keep_incomplete_shard=True, shuffle=False, seed=seed)
        return _ask(self, by, keys, clients)


@dataclass(frozen=True)
class Pathological:
    """Each client gets samples of so many classes and of no other.

    With at least as many clients as classes, the first class of each goes in turn and the others are drawn; with fewer
    clients neighbours in a ring of classes are taken, so that every class has an owner.
    """

    name: ClassVar[str] = "pathological"
    per_client: int = 2

    def __post_init__(self) -> None:
        check_count("per_client", self.per_client, 1)

    def divide(self, keys: Rows, clients: int, minimum: int, seed: int) -> list[Rows]:  # noqa: ARG002
        """Ask flwr-datasets' partitioner."""
        from flwr_datasets.partitioner import PathologicalPartitioner

        classes = len(np.unique(keys))
        least = max(1, classes - clients + 1)
        if not least <= self.per_client <= classes:
            raise DataError(
                f"per_client = {self.per_client}: with {classes} classes and {clients} clients it must be between "
                f"{least} and {classes}"
            )
        mode = "first-deterministic" if clients >= classes else "deterministic"
        by = PathologicalPartitioner(clients, "key", self.per_client, mode, shuffle=False, seed=seed)
        return _ask(self, by, keys, clients)


@dataclass(frozen=True)
class Natural:
    """Each owner that the data itself names is a client."""

    name: ClassVar[str] = "natural"

    def divide(self, keys: Rows, clients: int, minimum: int, seed: int) -> list[Rows]:  # noqa: ARG002
        """Return the rows of each owner, in the order of the owners."""
        owners = np.unique(keys)
        if clients != len(owners):
            raise DataError(f"clients = {clients}: the data names {len(owners)} owners, so there must be {len(owners)}")
        return [np.flatnonzero(keys == owner) for owner in owners]


_KINDS: tuple[type[Any], ...] = (Dirichlet, Iid, Shards, Pathological, Natural)
PARTITIONS: dict[str, type[Any]] = {kind.name: kind for kind in _KINDS}


def partition_named(name: str, **options: float | None) -> Partition:
    """Return a partition by its name; options that are None are left at their default.

    >>> partition_named("dirichlet", alpha=0.1, per_client=None)
    Dirichlet(alpha=0.1)
    >>> partition_named("iid", alpha=0.1)
    Traceback (most recent call last):
    pushcen.errors.OptionError: alpha = 0.1: partition iid has no such option
    >>> partition_named("shard")
    Traceback (most recent call last):
    pushcen.errors.OptionError: partition = 'shard': must be one of dirichlet, iid, shards, pathological, natural
    """
    check_choice("partition", name, tuple(PARTITIONS))
    kind = PARTITIONS[name]
    given = {key: value for key, value in options.items() if value is not None}
    for key in given.keys() - {field.name for field in fields(kind)}:
        raise OptionError(f"{key} = {given[key]}: partition {name} has no such option")
    made: Partition = kind(**given)
    return made


def _ask(partition: Partition, partitioner: Any, keys: Rows, clients: int) -> list[Rows]:
    """Ask a partitioner of flwr-datasets for the rows of each client, by public means."""
    from datasets import Dataset

    partitioner.dataset = Dataset.from_dict({"key": keys, "row": np.arange(len(keys))})
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):  # its warnings, and a progress bar
        warnings.simplefilter("ignore")
        try:
            tables = [partitioner.load_partition(client).with_format("numpy") for client in range(clients)]
        except ValueError as error:
            raise DataError(f"clients = {clients}: {partition} cannot serve them: {error}") from None
    return [np.asarray(table["row"][:], np.int64) for table in tables]
