"""The paper's appendix on WCP: what it saves in bits and costs in operations, with the numbers of its own models."""

from pushcen.analysis.table import Column, Table
from pushcen.codec import Schema
from pushcen.codec.cost import Cost
from pushcen.reproduce import models, paper
from pushcen.reproduce.operations import training_operations
from pushcen.reproduce.show import decimals

ITERATIONS = 3
"""Of k-means, as its authors ran it (T in the appendix)."""
HISTOGRAM = 4
"""Operations for each weight of a clustering by histogram: adding up and comparing, with the bin's number."""


def cost(dataset: str, clusters: int) -> Cost:
    """Give the appendix's formulas the numbers of a model: N clustered weights, a client's samples, E = 1.

    >>> cost("cifar10", 32).weights, round(cost("cifar10", 32).ratio, 4)
    (256520, 0.1564)
    """
    weights = sum(entry.size for entry in Schema.of(models.build(dataset)).clustered)
    return Cost(weights, clusters, models.train_samples(dataset), epochs=1, iterations=ITERATIONS)


def bits(datasets: tuple[str, ...] = paper.DATASETS) -> Table:
    """Show what WCP sends: C_full, C_centroid, C_index, C_WCP, rho and its limit."""
    rows = []
    for dataset in datasets:
        for clusters in (8, 16, 32):
            it = cost(dataset, clusters)
            centroids = (clusters - 1) * it.float_bits
            index = it.wcp_bits - centroids
            rows.append([_model(dataset), clusters, it.weights, it.full_bits, centroids, index, it.ratio, it.limit])
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


def operations(datasets: tuple[str, ...] = paper.DATASETS) -> Table:
    """Show what WCP costs beside training: the appendix's ratio, and the same with operations counted."""
    rows = []
    for dataset in datasets:
        for clusters in (8, 16, 32):
            it, training = cost(dataset, clusters), training_operations(dataset)
            lloyd = 2.0 * 2 * ITERATIONS * clusters * it.weights  # two clusterings; a distance and a comparison each
            optimum = 2.0 * HISTOGRAM * it.weights
            asymptotic = it.training_over_clustering
            rows.append([_model(dataset), clusters, it.samples, asymptotic, training / lloyd, training / optimum])
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


def _model(dataset: str) -> str:
    return f"{models.MODEL[dataset]}, {paper.CLASSES[dataset]} classes"
