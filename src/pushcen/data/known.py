"""The public data sets that are known by name, and how they are fetched from the Hugging Face hub.

`datasets` keeps what it has fetched, and then needs no network. The means and deviations are those of all training
pixels, to four digits. A slow test measures them again on the real files; Tiny-ImageNet's, which are the usual ones,
only on those of its classes that are at hand.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pushcen.data.arrays import Arrays
from pushcen.data.data import Scale
from pushcen.data.table import TESTS, from_tables
from pushcen.errors import DataError

_CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck"
_FASHION = "T-shirt,trouser,pullover,dress,coat,sandal,shirt,sneaker,bag,ankle boot"


@dataclass(frozen=True)
class Known:
    """A data set of the Hugging Face hub."""

    repository: str
    classes: tuple[str, ...]
    scale: Scale


def _numbers(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


KNOWN = {
    "cifar10": Known(
        "uoft-cs/cifar10",
        tuple(_CIFAR10.split()),
        Scale((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    ),
    "cifar100": Known(
        "uoft-cs/cifar100",
        _numbers(100),
        Scale((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
    ),
    "tiny-imagenet": Known(
        "zh-plus/tiny-imagenet",
        _numbers(200),
        Scale((0.4802, 0.4481, 0.3975), (0.2770, 0.2691, 0.2821)),
    ),
    "mnist": Known("ylecun/mnist", _numbers(10), Scale((0.1307,), (0.3081,))),
    "fashion-mnist": Known("zalando-datasets/fashion_mnist", tuple(_FASHION.split(",")), Scale((0.2860,), (0.3530,))),
}


def read_hub(repository: str, local: Path, size: int | None = None) -> Arrays:
    """Fetch a data set from the hub, with images of any size if there is a `size`.

    The error, where that fails, names the file `local` as another way.
    """
    import datasets

    try:
        found = datasets.load_dataset(repository)
    except Exception as error:  # no list of what the layers of a network stack raise is ever complete
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(
            f"{repository} cannot be fetched from the Hugging Face hub ({reason}); without a network put "
            f"x_train [N, H, W, C] as uint8 and y_train [N] into {local}, or name a local file or folder"
        ) from error
    return from_splits(found, repository, size)


def from_splits(found: Any, where: str, size: int | None = None) -> Arrays:
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
    return from_tables([found[split].with_format("arrow")[:] for split in splits], where, size)
