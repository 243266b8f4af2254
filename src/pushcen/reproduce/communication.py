"""Table 2, and the sizes of Table 6: bytes of a push, by the paper's formula and as they are really sent."""

from collections.abc import Iterator

from pushcen.analysis.table import Column, Table
from pushcen.codec.cost import paper_bytes
from pushcen.learning import Learner, Task
from pushcen.methods import Method, PushCen
from pushcen.protocol import Envelope, peer_id
from pushcen.protocol.wire import to_bytes
from pushcen.reproduce import models, paper
from pushcen.reproduce.show import decimals, signed_percent, text

MB = 1e6


def formula(dataset: str, method: str, clusters: int = 32) -> float:
    """Give the bytes of a push to ten receivers as the paper counts them.

    >>> round(formula("cifar10", "pushcen") / MB, 3), round(formula("cifar100", "divshare") / MB, 2)
    (1.622, 89.82)
    """
    model = models.build(dataset)
    if method == "pushcen":
        return models.RECEIVERS * paper_bytes(model, clusters)
    if method == "divshare":  # five fragments, each to two: two dense models
        return 2 * paper_bytes(model)
    return models.RECEIVERS * paper_bytes(model)


def sent(dataset: str, method: Method) -> int:
    """Encode a model as the method does, address it, and count the bytes of a push: payloads and envelopes.

    >>> round(sent("cifar10", PushCen(receivers=10)) / formula("cifar10", "pushcen"), 3)
    1.001
    """
    learner = Learner(Task(models.build(dataset), models.batch(dataset)), method.update())
    receivers: int = method.receivers  # type: ignore[attr-defined]
    me, you = peer_id("10", 0), peer_id("11", 0)
    pushed = [to_bytes(Envelope(me, you, part, 1, 0, load.data)) for part, load in learner.encode().items()]
    return receivers * sum(map(len, pushed))


def table2(datasets: tuple[str, ...] = paper.DATASETS) -> Table:
    """Hold the formula's bytes against Table 2, and against what is really sent."""
    rows = [
        [
            paper.TITLES[dataset],
            models.NAMES[name],
            counted := formula(dataset, name) / MB,
            printed := paper.numbers("table2", dataset, name)[0],
            counted / printed - 1,
            real := sent(dataset, method) / MB,
            real / printed - 1,
        ]
        for dataset in datasets
        for name, method in models.METHODS.items()
    ]
    return Table("Bytes of a push to ten receivers (Table 2)", _columns("method", "Table 2, MB"), rows, _NOTES)


def table6(datasets: tuple[str, ...] = paper.DATASETS) -> Table:
    """Do the same for the numbers of centroids in Table 6."""
    rows = [
        [
            paper.TITLES[dataset],
            clusters,
            counted := formula(dataset, "pushcen", clusters) / MB,
            printed := _printed(dataset, clusters),
            None if printed is None else counted / printed - 1,
            real := sent(dataset, PushCen(clusters=clusters, receivers=models.RECEIVERS)) / MB,
            None if printed is None else real / printed - 1,
        ]
        for dataset, clusters in _grid(datasets)
    ]
    return Table("Bytes of a push, by K (Table 6)", _columns("K", "Table 6, MB"), rows, _NOTES)


def _grid(datasets: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    return ((dataset, clusters) for dataset in datasets for clusters in (4, 8, 16, 32))


def _printed(dataset: str, clusters: int) -> float | None:
    found = paper.numbers("table6", dataset, str(clusters))
    return found[1] if found else None


def _columns(what: str, printed: str) -> list[Column]:
    return [
        Column("data", left=True),
        Column(what, text, left=True),
        Column("formula, MB", decimals(3)),
        Column(printed, decimals(3)),
        Column("difference", signed_percent),
        Column("really sent, MB", decimals(3)),
        Column("to the paper's", signed_percent),
    ]


_NOTES = (
    "formula: the paper's, which counts BatchNorm's parameters and leaves the downsample convolutions unclustered; "
    "really sent: payloads and envelopes, every one encoded. BatchNorm stays at home, for every method alike.",
)
