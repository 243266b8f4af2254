"""The paper's own numbers, read from paper.toml: every one with the table it stands in."""

import functools
import tomllib
from importlib import resources
from typing import Any

DATASETS = ("cifar10", "cifar100", "tiny-imagenet")
"""The paper's data sets."""
TITLES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "tiny-imagenet": "Tiny-ImageNet"}
CLASSES = {"cifar10": 10, "cifar100": 100, "tiny-imagenet": 200}
SWAPPED = {"0.1": "1.0", "0.4": "0.4", "1.0": "0.1"}
"""Which column of Table 1 holds an alpha's numbers, if its outer columns are swapped."""


@functools.cache
def tables() -> dict[str, Any]:
    """Read all tables: table, data set, row.

    >>> tables()["table2"]["cifar10"]["pushcen"]
    [1.622, 1.0]
    """
    return tomllib.loads((resources.files("pushcen.reproduce") / "paper.toml").read_text("utf-8"))


def rows(table: str, dataset: str) -> dict[str, Any]:
    """Give a table's rows for a data set; none if the paper has no such table.

    >>> list(rows("table6", "cifar100")), rows("table9", "cifar100")
    (['8', '16', '32'], {})
    """
    found: dict[str, Any] = tables().get(table, {}).get(dataset, {})
    return found


def numbers(table: str, dataset: str, row: str, alpha: float | None = None) -> list[float]:
    """Give what the paper prints in a row, as a list: first the figure itself; empty if it prints nothing.

    >>> numbers("table1", "cifar10", "pushcen", alpha=0.4)
    [66.22, 7.82]
    >>> numbers("table4", "cifar10", "no-buffer"), numbers("table4", "cifar10", "no-mask")
    ([65.04], [])
    """
    found = rows(table, dataset).get(row, [])
    if isinstance(found, dict):
        found = found.get(column(alpha), [])
    return list(found) if isinstance(found, list) else [found]


def column(alpha: float | None) -> str:
    """Name the column of an alpha as Table 1 does.

    >>> column(1), column(0.4)
    ('1.0', '0.4')
    """
    return "" if alpha is None else str(float(alpha))
