"""The Hugging Face hub, through `datasets`, which keeps what it has fetched and then needs no network."""

from pathlib import Path
from typing import Any

from pushcen.data.arrays import Arrays
from pushcen.data.table import TESTS, from_tables
from pushcen.errors import DataError


def read_hub(repository: str, local: Path) -> Arrays:
    """Fetch a data set from the hub; where that fails, say that the file `local` would do as well."""
    import datasets

    try:
        found = datasets.load_dataset(repository)
    except Exception as error:  # no list of what the layers of a network stack raise is ever complete
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(
            f"{repository} cannot be had from the Hugging Face hub ({reason}); without a network put "
            f"x_train [N, H, W, C] as uint8 and y_train [N] into {local}, or name a local file or folder"
        ) from error
    return from_splits(found, repository)


def from_splits(found: Any, where: str) -> Arrays:
    """Convert a `datasets.DatasetDict` to arrays: its split `train`, and `test` or `valid` if it has one.

    >>> from datasets import Dataset, DatasetDict
    >>> flowers = Dataset.from_dict({"length": [5.1, 4.9], "label": [0, 1]})
    >>> from_splits(DatasetDict(train=flowers), "flowers").train.labels.tolist()
    [0, 1]
    """
    if "train" not in found:
        raise DataError(f"{where}: has no split train; it has {', '.join(map(str, found))}")
    test = next((name for name in TESTS if name in found), None)
    splits = ["train", test] if test else ["train"]
    return from_tables([found[split].with_format("arrow")[:] for split in splits], where)
