"""`pushcen bench codec`."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]


def codec(as_json: Json = False) -> None:
    """Measure the codec on a ResNet-18's weights, on one thread (about a minute)."""
    from pushcen.bench.codec import measure

    with Console(stderr=True).status("training a ResNet-18 a little, then measuring its codec ..."):
        figures = measure()
    if as_json:
        typer.echo(json.dumps(figures.as_dict()))
        return
    table = Table(title=f"codec, {figures.weights:,} numbers, K = 32, one thread")
    table.add_column("measure")
    table.add_column("value", justify="right")
    table.add_column("goal", justify="right")
    table.add_row("encode_speedup_vs_plain", f"{figures.encode_speedup_vs_plain:.0f}", ">= 100")
    for clusters, ratio in figures.distortion_vs_optimum.items():
        table.add_row(f"distortion_vs_optimum, K = {clusters}", f"{ratio:.4f}", "<= 1.02")
    for clusters, share in figures.zero_in_the_middle.items():
        table.add_row(f"zero_in_the_middle, K = {clusters}", f"{share:.0%}", "")
    table.add_row("distortion_vs_plain", f"{figures.distortion_vs_plain:.3f}", "<= 0.3")
    table.add_row("encode_vs_memcpy", f"{figures.encode_vs_memcpy:.2f}", "<= 12")
    table.add_row("accumulate_vs_dense_add", f"{figures.accumulate_vs_dense_add:.2f}", "<= 1.5")
    table.add_row("check_vs_dense_add", f"{figures.check_vs_dense_add:.2f}", "")
    table.add_row("bits_per_weight", f"{figures.bits_per_weight:.3f}", "")
    table.add_row("entropy_bits_per_weight", f"{figures.entropy_bits_per_weight:.3f}", "")
    Console().print(table)
