"""Who got what: in numbers, and as a picture with a cell for each class and client."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pushcen.data.clients import ClientShare, Split
from pushcen.drawing import BLUE, WIDTH, drawing, write
from pushcen.errors import OptionError

_SUFFIXES = (".svg", ".png", ".pdf")
_LIGHT = "#99C7E0"  # told apart from blue in grey, too
_FEW_TO_MANY = ["#DCEBF5", BLUE, "#002F4A"]  # one hue: only lightness tells, to every eye


@dataclass(frozen=True)
class Summary:
    """One client's part of the data."""

    client: int
    train: int
    test: int
    classes: int
    largest: str  # the name of its most frequent class
    largest_share: float

    @property
    def samples(self) -> int:
        """Training and test samples together."""
        return self.train + self.test


def count(split: Split) -> NDArray[np.int64]:
    """Return how many samples of each class, or each tenth of numbers, each client has, [clients, classes].

    >>> from pushcen.data import Iid, load, split
    >>> count(split(load("digits"), 3, Iid())).sum(axis=1).tolist()
    [599, 599, 599]
    """
    groups, names = split.data.groups()
    return np.stack([np.bincount(groups[_rows(client)], minlength=len(names)) for client in split])


def summarise(split: Split) -> list[Summary]:
    """Return a summary of what each client has.

    >>> from pushcen.data import Shards, load, split
    >>> first, *_ = summarise(split(load("digits"), 10, Shards(per_client=2)))
    >>> first.samples, first.train, first.test
    (177, 142, 35)
    """
    names = split.data.groups()[1]
    return [
        Summary(
            client.client,
            len(client.train),
            len(client.test),
            int((row > 0).sum()),
            names[int(row.argmax())],
            float(row.max() / row.sum()),
        )
        for client, row in zip(split, count(split), strict=True)
    ]


def draw(split: Split, out: Path) -> None:
    """Draw `split` into the file `out`: svg, png or pdf by its name.

    >>> from pushcen.data import load, split
    >>> draw(split(load("digits"), 3), Path("who.txt"))
    Traceback (most recent call last):
    pushcen.errors.OptionError: out = 'who.txt': must end in .svg, .png or .pdf
    """
    if out.suffix.lower() not in _SUFFIXES:
        raise OptionError(f"out = {str(out)!r}: must end in {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}")
    if not out.absolute().parent.is_dir():
        raise OptionError(f"out = {str(out)!r}: there is no folder {str(out.parent)!r}")
    from matplotlib.figure import Figure

    with drawing():
        figure = Figure(figsize=_size(split), layout="constrained")
        _fill(figure, split)
    write(figure, out)


def _size(split: Split) -> tuple[float, float]:
    return min(12, max(WIDTH, 2.5 + 0.09 * len(split))), min(9, max(4.0, 2.2 + 0.22 * len(split.data.groups()[1])))


def _fill(figure: Any, split: Split) -> None:
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.ticker import LogLocator

    table = count(split).T
    classes, clients = table.shape
    bars, cells = figure.subplots(2, 1, sharex=True, height_ratios=[1, min(5, max(3, classes / 8))])
    train = [len(client.train) for client in split]
    test = [len(client.test) for client in split]
    bars.bar(range(clients), train, width=0.85, color=BLUE, label="training")
    bars.bar(range(clients), test, width=0.85, bottom=train, color=_LIGHT, label="test")
    bars.set_ylabel("samples")
    bars.grid(visible=False, axis="x")
    bars.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, handlelength=1.2, borderaxespad=0)
    bars.set_title(f"{split.data.name} among {clients} clients, {split.partition}", loc="left")
    shades = LinearSegmentedColormap.from_list("few to many", _FEW_TO_MANY)
    shown = cells.imshow(
        np.ma.masked_equal(table, 0),
        aspect="auto",
        interpolation="nearest",
        cmap=shades,
        norm=LogNorm(1, max(2, table.max())),
    )
    cells.grid(visible=False)
    cells.set(xlabel="client (white: has none of that class)", xlim=(-0.5, clients - 0.5))
    cells.xaxis.get_major_locator().set_params(integer=True)
    if classes <= 40:
        cells.set_yticks(range(classes), split.data.groups()[1])
        if classes <= 20 and clients <= 100:
            cells.set_yticks(np.arange(-0.5, classes), minor=True)
            cells.grid(axis="y", which="minor", color="#dddddd", linewidth=0.5)
            cells.tick_params(which="minor", length=0)
    else:
        cells.set_ylabel("class")
    figure.colorbar(shown, ax=cells, label="samples of a class", pad=0.01, format="%d", ticks=LogLocator(subs=(1, 3)))


def _rows(client: ClientShare) -> NDArray[np.int64]:
    return np.concatenate((client.train.rows.numpy(), client.test.rows.numpy()))
