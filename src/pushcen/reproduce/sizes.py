"""Table 2, the sizes of Table 6, and the appendix's: what is sent, by the paper's formulas and as it really is."""

from collections.abc import Iterator

from pushcen.analysis.table import Column, Table
from pushcen.analysis.units import decimals, signed_percent, text
from pushcen.codec import Schema
from pushcen.codec.cost import Cost, paper_bytes
from pushcen.learning import Learner, Task
from pushcen.methods import Method, PushCen
from pushcen.protocol import Envelope, peer_id
from pushcen.protocol.wire import to_bytes
from pushcen.reproduce import paper

MB = 1e6
ITERATIONS = 3
"""Of k-means, as its authors ran it (T in the appendix)."""


def formula(dataset: str, method: str, clusters: int = 32) -> float:
    """Return the bytes of a push to ten receivers as the paper counts them.

    >>> round(formula("cifar10", "pushcen") / MB, 3), round(formula("cifar100", "divshare") / MB, 2)
    (1.622, 89.82)
    """
    model = paper.model(dataset)
    if method == "pushcen":
        return paper.RECEIVERS * paper_bytes(model, clusters)
    if method == "divshare":  # five fragments, each to two: two dense models
        return 2 * paper_bytes(model)
    return paper.RECEIVERS * paper_bytes(model)


def sent(dataset: str, method: Method) -> int:
    """Return the bytes of a push as the method encodes it: payloads and envelopes.

    >>> round(sent("cifar10", PushCen(receivers=10)) / formula("cifar10", "pushcen"), 3)
    1.001
    """
    learner = Learner(Task(paper.model(dataset), paper.batch(dataset)), method.update())
    receivers: int = method.receivers  # type: ignore[attr-defined]
    me, you = peer_id("10", 0), peer_id("11", 0)
    pushed = [to_bytes(Envelope(me, you, part, 1, 0, load.data)) for part, load in learner.encode().items()]
    return receivers * sum(map(len, pushed))


def table2(datasets: tuple[str, ...] = paper.DATASETS) -> Table:
    """Return a table of the formula's bytes beside Table 2's, and beside what is really sent."""
    rows = [
        [
            paper.TITLES[dataset],
            paper.NAMES[name],
            counted := formula(dataset, name) / MB,
            printed := paper.numbers("table2", dataset, name)[0],
            counted / printed - 1,
            real := sent(dataset, method) / MB,
            real / printed - 1,
        ]
        for dataset in datasets
        for name, method in paper.METHODS.items()
    ]
    return Table("Bytes of a push to ten receivers (Table 2)", _columns("method", "Table 2, MB"), rows, _NOTES)


def table6(datasets: tuple[str, ...] = paper.DATASETS) -> Table:
    """Return the same for the numbers of centroids in Table 6."""
    rows = [
        [
            paper.TITLES[dataset],
            clusters,
            counted := formula(dataset, "pushcen", clusters) / MB,
            printed := _printed(dataset, clusters),
            None if printed is None else counted / printed - 1,
            real := sent(dataset, PushCen(clusters=clusters, receivers=paper.RECEIVERS)) / MB,
            None if printed is None else real / printed - 1,
        ]
        for dataset, clusters in _grid(datasets)
    ]
    return Table("Bytes of a push, by K (Table 6)", _columns("K", "Table 6, MB"), rows, _NOTES)


def cost(dataset: str, clusters: int) -> Cost:
    """Return the appendix's formulas with the numbers of a model: N clustered weights, a client's samples, E = 1.

    >>> cost("cifar10", 32).weights, round(cost("cifar10", 32).ratio, 4)
    (256520, 0.1564)
    """
    weights = sum(entry.size for entry in Schema.of(paper.model(dataset)).clustered)
    return Cost(weights, clusters, paper.train_samples(dataset), epochs=1, iterations=ITERATIONS)


def bits(datasets: tuple[str, ...] = paper.DATASETS) -> Table:
    """Return a table of what WCP sends: C_full, C_centroid, C_index, C_WCP, rho and its limit."""
    rows = []
    for dataset in datasets:
        for clusters in (8, 16, 32):
            it = cost(dataset, clusters)
            centroids = (clusters - 1) * it.float_bits
            index = it.wcp_bits - centroids
            rows.append(
                [paper.model_name(dataset), clusters, it.weights, it.full_bits, centroids, index, it.ratio, it.limit]
            )
    columns = [
        Column("model", left=True),
        Column("k"),
        Column("weights N", "{:,}".format),
        Column("C_full = N B, bits", "{:,}".format),
        Column("C_centroid = (k - 1) B", "{:,}".format),
        Column("C_index = N ceil(log2 k)", "{:,}".format),
        Column("rho = C_WCP / C_full", decimals(5)),
        Column("its limit ceil(log2 k) / B", decimals(5)),
    ]
    note = "B = 32. The formula has one table for the whole model; real messages have one for each layer."
    return Table("What WCP sends (appendix)", columns, rows, [note])


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
