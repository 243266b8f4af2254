"""Data sets and how they are divided: sources by name or from local files, normalised once and held once, and
partitions that give every sample to exactly one client. Clients get row numbers into the one copy. Nothing here knows
of models, methods or peers; a task may bring data of its own and use none of it.

    >>> from pushcen.data import Dirichlet, load, split
    >>> divided = split(load("digits"), clients=10, partition=Dirichlet(alpha=0.5), seed=7)
    >>> sum(len(client) for client in divided)
    1797
    >>> inputs, labels = divided[3].train[:16]            # a batch of client 3
    >>> inputs.shape
    torch.Size([16, 1, 8, 8])
"""

from pushcen.data.clients import ClientData, ClientShare, Split, split
from pushcen.data.columns import Columns, TableColumn, Target, read_columns
from pushcen.data.data import Data, Scale, check_labels
from pushcen.data.partitions import (
    PARTITIONS,
    Dirichlet,
    Iid,
    Natural,
    Partition,
    Pathological,
    Shards,
    partition_named,
)
from pushcen.data.sources import NAMES, load
from pushcen.data.summary import Summary, count, draw, summarise
from pushcen.data.tables import RawTable, in_words, measure_files, of_one_class, read_table, split_table
from pushcen.errors import DataError, OptionError

__all__ = [
    "NAMES",
    "PARTITIONS",
    "ClientData",
    "ClientShare",
    "Columns",
    "Data",
    "DataError",
    "Dirichlet",
    "Iid",
    "Natural",
    "OptionError",
    "Partition",
    "Pathological",
    "RawTable",
    "Scale",
    "Shards",
    "Split",
    "Summary",
    "TableColumn",
    "Target",
    "check_labels",
    "count",
    "draw",
    "in_words",
    "load",
    "measure_files",
    "of_one_class",
    "partition_named",
    "read_columns",
    "read_table",
    "split",
    "split_table",
    "summarise",
]
