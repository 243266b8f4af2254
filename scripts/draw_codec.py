"""Draw docs/pictures/codec_histogram.svg: one layer's weights, with its centroids. `make figures` runs it."""

import pathlib

import numpy as np

from pushcen.bench.common import trained_resnet18
from pushcen.codec import cluster
from pushcen.drawing import BLUE, GREY, INK, ORANGE, canvas, drawing, write

PICTURES = pathlib.Path(__file__).parent.parent / "docs" / "pictures"


def picture():
    layer = trained_resnet18().get_parameter("layer2.0.conv2.weight").detach()
    weights = layer.numpy().ravel()
    figure, axes = canvas(2, 1, height=4.6, sharex=True, height_ratios=[3, 2])
    axes[0].hist(weights, bins=300, color=BLUE, alpha=0.75)
    axes[0].set_ylabel("weights in a bin")
    axes[0].set_title(f"a layer of a ResNet-18, trained a little ({weights.size:,} weights)", loc="left")
    for row, clusters in enumerate((32, 8)):
        found = cluster(layer, clusters)
        table = found.centroids.numpy()
        share = np.bincount(found.indices.numpy().ravel(), minlength=clusters) / weights.size
        axes[1].scatter(table, np.full(clusters, row), s=900 * share, color=ORANGE, alpha=0.85, zorder=3)
        zero = found.zero_index
        axes[1].scatter(0, row, s=40, marker="x", color=INK, zorder=4)
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
    axes[1].set_title("its centroids (area: share of the weights; cross: the one held at zero)", loc="left")
    axes[1].grid(visible=False, axis="y")
    return figure


def main():
    PICTURES.mkdir(exist_ok=True)
    with drawing():
        figure = picture()
    write(figure, PICTURES / "codec_histogram.svg")


if __name__ == "__main__":
    main()
