"""Table 3 and the appendix: operations of a compute event. The paper does not say what it counts; we say what we do."""

import copy
import functools

import numpy as np
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from pushcen.analysis.table import Column, Table
from pushcen.analysis.units import decimals
from pushcen.codec import Schema
from pushcen.learning import TrainingOptions
from pushcen.methods import Method, PushCen
from pushcen.reproduce import paper
from pushcen.reproduce.sizes import ITERATIONS, cost

HISTOGRAM = 4
"""Operations for each weight of a clustering by histogram: adding up and comparing, with the bin's number."""
NOTE = (
    "One compute event of an average client (its share of the images, batches of 32, one epoch): training, forward and "
    "backward, by torch's counter; merging, 2 operations for each number in the ten messages (DivShare: ten "
    "fragments) and in the own model; PushCen's two clusterings, regulariser and mask. The optimiser is the same for "
    "all, and not counted; nor is anything saved by weights that are zero."
)


@functools.cache
def training_operations(dataset: str) -> float:
    """Return the operations, forward and backward, of one epoch of an average client; counted on shapes alone.

    >>> round(training_operations("cifar10") / 1e9, 1)
    15.2
    """
    images, labels = (tensor.to("meta") for tensor in paper.batch(dataset))
    model = copy.deepcopy(paper.model(dataset)).to("meta")
    with FlopCounterMode(display=False) as counter:
        cross_entropy(model(images), labels).backward()  # type: ignore[no-untyped-call]
    return float(counter.get_total_flops()) * TrainingOptions().steps(paper.train_samples(dataset))


def event_operations(dataset: str, method: Method) -> float:
    """Return the operations of a compute event: training, merging as much as is sent, and what the method adds."""
    update, schema = method.update(), Schema.of(paper.model(dataset))
    update.prepare(schema, TrainingOptions(), np.random.default_rng(0))
    received: int = method.receivers * schema.size  # type: ignore[attr-defined]  # of each part, and so of all
    steps = TrainingOptions().steps(paper.train_samples(dataset))
    return training_operations(dataset) + 2.0 * (received + schema.size) + update.flops(steps)


def table3(datasets: tuple[str, ...] = paper.DATASETS) -> Table:
    """Return a table of each method's operations over those of Async-DFedAvg, beside the same quotient of Table 3."""
    methods = {paper.NAMES[name]: (name, method) for name, method in paper.METHODS.items()}
    methods["PushCen, three iterations of k-means"] = ("pushcen", PushCen(profile="paper"))
    rows = []
    for dataset in datasets:
        base = event_operations(dataset, paper.METHODS["async-dfedavg"])
        [printed_base] = paper.numbers("table3", dataset, "async-dfedavg")
        for label, (name, method) in methods.items():
            operations = event_operations(dataset, method)
            [printed] = paper.numbers("table3", dataset, name)
            values = (operations / 1e9, operations / base, printed, printed / printed_base)
            rows.append([paper.TITLES[dataset], label, *values, operations / base - printed / printed_base])
    columns = [
        Column("data", left=True),
        Column("method", left=True),
        Column("GFLOPs of an event", decimals(2)),
        Column("over Async-DFedAvg", decimals(3)),
        Column("Table 3, GFLOPs", decimals(2)),
        Column("over Async-DFedAvg, Table 3", decimals(3)),
        Column("difference", "{:+.3f}".format),
    ]
    return Table("Operations of a compute event (Table 3)", columns, rows, [NOTE])


def clustering_operations(datasets: tuple[str, ...] = paper.DATASETS) -> Table:
    """Return a table of what WCP costs beside training: the appendix's ratio, and the same with operations counted."""
    rows = []
    for dataset in datasets:
        for clusters in (8, 16, 32):
            it, training = cost(dataset, clusters), training_operations(dataset)
            lloyd = 2.0 * 2 * ITERATIONS * clusters * it.weights  # two clusterings; a distance and a comparison each
            optimum = 2.0 * HISTOGRAM * it.weights
            asymptotic = it.training_over_clustering
            rows.append(
                [paper.model_name(dataset), clusters, it.samples, asymptotic, training / lloyd, training / optimum]
            )
    columns = [
        Column("model", left=True),
        Column("k"),
        Column("samples N", "{:,}".format),
        Column("N E / (T k)", decimals(1)),
        Column("training / k-means, counted", "{:,.0f}".format),
        Column("training / clustering here, counted", "{:,.0f}".format),
    ]
    notes = [
        f"N E / (T k) is the appendix's ratio, with E = 1 and T = {ITERATIONS}: orders of growth, no constants. "
        "Counted: one epoch of an average client by torch's counter, over the two clusterings of a compute event. A "
        "convolution uses each weight at many places of an image, so training costs far more than N E P_tot.",
        "clustering here: the optimum on a histogram, 4 operations a weight, whatever k.",
    ]
    return Table("What WCP costs beside training (appendix)", columns, rows, notes)
