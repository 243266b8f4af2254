"""`pushcen bench simulator`."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]


def simulator(as_json: Json = False) -> None:
    """Measure what a simulation costs beside the training in it (about four minutes)."""
    from pushcen.bench.simulator import run

    with Console(stderr=True).status("training LeNets, bare and simulated; then a thousand; then many events ..."):
        found = run()
    if as_json:
        typer.echo(json.dumps(found))
        return
    table = Table(title="the simulator", box=None)
    table.add_column("figure")
    table.add_column("measured", justify="right")
    for name, value in found.items():
        table.add_row(name.replace("_", " "), str(value))
    Console().print(table)
