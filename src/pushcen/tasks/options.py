"""Which data, and who gets what of it: the section `data` of a config."""

from dataclasses import dataclass
from pathlib import PurePath

from pushcen.checks import check_choice, check_count, check_number
from pushcen.data import NAMES, Partition, Scale, partition_named
from pushcen.errors import OptionError
from pushcen.tasks.augmentation import check_augment

_OF_TABLES, _OF_IMAGES = ("label", "owner", "target", "columns"), ("size", "scale", "augment", "path")
_TABLES = (".csv", ".tsv")  # parquet may hold images


@dataclass(frozen=True)
class DataOptions:
    """Which data, and who gets what of it: the section `data` of a config.

    >>> DataOptions(partition="iid", alpha=0.1)
    Traceback (most recent call last):
    pushcen.errors.OptionError: alpha = 0.1: partition iid has no such option
    >>> DataOptions("patients.csv", label="outcome", owner="hospital").partition
    'natural'
    """

    source: str = "digits"
    """A name (digits, mnist, cifar10, ...), or a file or folder."""
    path: str = ""
    """Where the files of a named data set are, if not in the cache folder."""
    partition: str = "dirichlet"
    """dirichlet, iid, shards, pathological or natural."""
    alpha: float | None = None
    """dirichlet: the smaller, the more skewed [0.4]."""
    per_client: int | None = None
    """shards, pathological: how many a client [2]."""
    share: float = 1.0
    """Which share of the samples to use; the seed decides which are left out."""
    pool_test: bool = False
    """Whether clients share the global test set, too."""
    test_share: float = 0.2
    """Which share of its samples each client keeps for testing."""
    min_samples: int = 2
    """The fewest samples a client may have."""
    label: str | None = None
    """Tables: the column to learn [label]."""
    owner: str | None = None
    """Tables: the column that says whose a row is; each owner is a client."""
    target: str | None = None
    """Tables: what the label is, class or number [by what is in the column]."""
    columns: str | None = None
    """Tables: a file of `pushcen data columns` that all sites share [made of all training rows]."""
    size: int | None = None
    """Images: make those of any size squares of so many pixels a side."""
    scale: str | None = None
    """Images: means / deviations of the channels, as `0.5,0.4,0.4/0.2,0.2,0.2` [as known, or measured]."""
    augment: str | None = None
    """Images: change training batches at random: flip, crop or flip,crop."""

    def __post_init__(self) -> None:
        for name in (*_OF_TABLES, "scale", "augment"):
            if getattr(self, name) == "":  # as a flag may have it
                object.__setattr__(self, name, None)
        if self.owner:
            if self.partition not in ("dirichlet", "natural"):
                raise OptionError(f"partition = {self.partition!r}: must be natural where owner = {self.owner!r}")
            object.__setattr__(self, "partition", "natural")
        chosen = self.division()
        for name in ("alpha", "per_client"):  # resolved: what the partition has, and nothing that it has not
            object.__setattr__(self, name, getattr(chosen, name, None))
        check_number("share", self.share, 0, 1, above=True)
        check_number("test_share", self.test_share, 0, 1, below=True)
        check_count("min_samples", self.min_samples, 1)
        if self.target is not None:
            check_choice("target", self.target, ("class", "number"))
        if self.size is not None:
            check_count("size", self.size, 2, 1024)
        if self.scale is not None:
            object.__setattr__(self, "scale", str(Scale.parse(self.scale)))
        if self.augment is not None:
            check_augment(self.augment)
        for name in _OF_TABLES if self.source in NAMES else _OF_IMAGES if self.is_table else ():
            if value := getattr(self, name):
                wrong = "is for tables, CSV or parquet files" if name in _OF_TABLES else "is for images"
                raise OptionError(f"{name} = {value!r}: {wrong}; source = {self.source!r} is none")

    def division(self) -> Partition:
        """Return how samples are divided among clients."""
        return partition_named(self.partition, alpha=self.alpha, per_client=self.per_client)

    @property
    def is_table(self) -> bool:
        """Whether the source is a table: a CSV file, or something with a column to learn."""
        return PurePath(self.source).suffix.lower() in _TABLES or any(getattr(self, name) for name in _OF_TABLES)
