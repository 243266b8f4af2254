"""`pushcen bench start`: how long it takes from the command to the table."""

import json
from typing import Annotated

import typer


def start(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; docs/commands.md explains the keys.")] = False,
    rounds: Annotated[int, typer.Option(min=1, help="How often each is started; the quickest counts.")] = 3,
) -> None:
    """Measure `pushcen simulate` with 4 clients to T = 1 in fresh processes, with and without compiled kernels."""
    from rich.console import Console
    from rich.table import Table

    from pushcen.bench.start import GOALS, run

    with Console(stderr=True).status("starting a small run, again and again ..."):
        figures = run(rounds)
    if as_json:
        typer.echo(json.dumps(figures, indent=2))
        return
    table = Table(title="Seconds from `pushcen simulate` to its table", title_justify="left")
    table.add_column("start")
    for name in (*figures["cold"], "goal"):
        table.add_column(name, justify="right")
    for kind, parts in figures.items():
        table.add_row(kind, *(f"{seconds:.2f}" for seconds in parts.values()), f"<= {GOALS[kind]:g}")
    Console().print(table)
