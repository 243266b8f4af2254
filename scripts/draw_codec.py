"""Draw docs/pictures/codec_histogram.svg: one layer's weights, with its centroids. `make figures` runs it."""

import pathlib

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

from pushcen.bench.weights import trained_resnet18
from pushcen.codec import cluster

PICTURES = pathlib.Path(__file__).parent.parent / "docs" / "pictures"
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"  # told apart by colour-blind readers, and in grey


def main():
    PICTURES.mkdir(exist_ok=True)
    plt.rcParams.update(
        {"svg.hashsalt": "pushcen", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    )
    layer = trained_resnet18().get_parameter("layer2.0.conv2.weight").detach()
    weights = layer.numpy().ravel()
    figure, axes = plt.subplots(
        2, 1, figsize=(8, 5), sharex=True, gridspec_kw={"height_ratios": [3, 2]}, layout="constrained"
    )
    axes[0].hist(weights, bins=300, color=BLUE, alpha=0.75)
    axes[0].set_ylabel("weights in a bin")
    axes[0].set_title(
        f"A layer of a ResNet-18 ({weights.size:,} weights, trained a little) and what K values make of it"
    )
    for row, clusters in enumerate((32, 8)):
        found = cluster(layer, clusters)
        table = found.centroids.numpy()
        share = np.bincount(found.indices.numpy().ravel(), minlength=clusters) / weights.size
        axes[1].scatter(table, np.full(clusters, row), s=900 * share, color=ORANGE, alpha=0.85, zorder=3)
        zero = found.zero_index
        axes[1].scatter(0, row, s=40, marker="x", color="black", zorder=4)
        error = float((found.decode() - layer).square().sum() / layer.square().sum())
        axes[1].annotate(
            f"K = {clusters}: error {error:.2%}\n{share[zero]:.0%} pruned to zero",
            (1.0, row),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="center",
            fontsize=9,
        )
        axes[1].axhline(row, color=GREY, linewidth=0.5, zorder=1)
    reach = 1.25 * float(np.abs(weights).max())
    axes[1].set(ylim=(-0.6, 1.6), yticks=[0, 1], yticklabels=["K = 32", "K = 8"], xlabel="weight", xlim=(-reach, reach))
    axes[1].set_title("centroids (area: share of the weights; cross: the one held at zero)", fontsize=9)
    figure.savefig(PICTURES / "codec_histogram.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
