"""`pushcen codec ...`: the codec by itself, on models everybody knows."""

from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(help="The codec by itself: what it makes of two models, and what it costs.", no_args_is_help=True)
Clusters = Annotated[int, typer.Option("--clusters", "-k", help="Centroids a layer, 2 to 256 (K in the paper).")]


@app.command()
def demo(clusters: Clusters = 32) -> None:
    """Encode a LeNet and a ResNet-18, trained a little, and show what comes out."""
    from pushcen.analysis import Column, Table
    from pushcen.bench.codec import encode_models
    from pushcen.codec import Centroids

    console = Console()
    chosen = Centroids(clusters)
    with console.status("training both models a little, on scikit-learn's digits ..."):
        rows = encode_models(chosen)
    names = ("numbers", "dense MB", "sent MB", "ratio", "distortion", "encode", "merge")
    shown = [
        [
            row.model,
            f"{row.numbers / 1e6:.2f} M",
            f"{row.dense_bytes / 1e6:.3f}",
            f"{row.encoded_bytes / 1e6:.3f}",
            f"{row.dense_bytes / row.encoded_bytes:.2f}",
            f"{row.distortion:.2%}",
            f"{row.encode_ms:.1f} ms",
            f"{row.merge_ms:.1f} ms",
        ]
        for row in rows
    ]
    columns = [Column("model", left=True), *map(Column, names)]
    console.print(Table(f"What the codec makes of a model, K = {clusters}", columns, shown).rich())
    console.print(
        "distortion: mean squared error over mean square, of the clustered layers\n"
        "encode, merge: best of five, one thread; merging reads the packed bytes directly"
    )


@app.command()
def cost() -> None:
    """Print the paper's analysis of what clustering costs (its appendix), and the sizes of its Table 2, with ours."""
    from pushcen.analysis import Column, Table
    from pushcen.codec import Centroids, Schema, payload_size
    from pushcen.codec.cost import Cost, paper_bytes
    from pushcen.models import LeNet, resnet18

    console = Console()
    models = {
        "LeNet/10": (LeNet(10), 480),  # CIFAR-10's 60,000 images over 100 clients, 80 % for training
        "ResNet-18/100": (resnet18(100), 960),  # CIFAR-100's over 50 clients
        "ResNet-18/200": (resnet18(200), 1760),  # Tiny-ImageNet's 110,000 over 50 clients
    }
    sizes, theory = [], []
    for name, (model, samples) in models.items():
        schema = Schema.of(model)
        weights = sum(entry.size for entry in schema.clustered)
        for clusters in (8, 16, 32):
            paper, dense = paper_bytes(model, clusters), paper_bytes(model)
            ours = payload_size(schema, Centroids(clusters))
            sizes.append([name, clusters, *(f"{10 * size / 1e6:.3f}" for size in (paper, ours, dense))])
            found = Cost(weights=weights, clusters=clusters, samples=samples, epochs=1, iterations=3)
            ratios = [f"{found.ratio:.5f}", f"{found.limit:.5f}", samples, f"{found.training_over_clustering:.1f}"]
            theory.append([name, clusters, *ratios])
    first = [Column("model/classes", left=True), Column("K")]
    counts = map(Column, ("paper's count", "really sent", "dense, paper's count"))
    costs = map(Column, ("C_WCP / C_full", "limit", "samples", "training / clustering"))
    console.print(Table("One push to ten receivers, in MB (10^6 bytes)", [*first, *counts], sizes).rich(), "")
    title = "What clustering saves and costs (B = 32 bits, E = 1 epoch, T = 3 iterations)"
    console.print(Table(title, [*first, *costs], theory).rich())
