"""The public data sets that are known by name: where the hub has them, their classes, and their normalisation.

The means and deviations are those of all training pixels, to four digits. A slow test measures them again on the real
files; Tiny-ImageNet's, which are the usual ones, only on those of its classes that are at hand.
"""

from dataclasses import dataclass

from pushcen.data.scale import Scale

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
