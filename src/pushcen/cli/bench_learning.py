"""`pushcen bench learning`: what a compute event costs beside plain training."""

import json
from typing import Annotated

import typer


def learning(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; docs/learning.md explains the keys.")] = False,
) -> None:
    """Measure PushCen's compute event beside plain training of the same batches, on one thread. Takes minutes."""
    from pushcen.bench.learning import BATCHES, measure

    figures = measure()
    if as_json:
        typer.echo(json.dumps(figures.as_dict(), indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title="A PushCen compute event over plain training of the same batches", title_justify="left")
    table.add_column("model")
    table.add_column("batches of 32", justify="right")
    table.add_column("whole event", justify="right")
    for part in next(iter(figures.parts_vs_plain.values())):
        table.add_column(part, justify="right")
    for name, ratio in figures.overhead_vs_plain.items():
        shares = [f"{100 * share:.1f} %" for share in figures.parts_vs_plain[name].values()]
        table.add_row(name, str(BATCHES[name]), f"{ratio:.3f} x", *shares)
    Console().print(table)
