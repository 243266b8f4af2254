"""`pushcen bench runtime`: what the real network costs beside bare gRPC."""

import json
from typing import Annotated

import typer


def runtime(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; docs/runtime.md explains the keys.")] = False,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each measurement; the best counts.")] = 25,
) -> None:
    """Measure pushes of a LeNet and a ResNet-18 over TLS, beside bare gRPC with the same bytes, in one run."""
    from pushcen.bench.runtime import run

    result = run(rounds)
    if as_json:
        typer.echo(json.dumps(result, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title="A push over TLS on loopback, beside bare gRPC", title_justify="left")
    table.add_column("what")
    table.add_column("LeNet", justify="right")
    table.add_column("ResNet-18", justify="right")
    for key in result["lenet"]:
        table.add_row(key.replace("_", " "), *(f"{result[model][key]:,}" for model in ("lenet", "resnet18")))
    Console().print(table)
    share = result["training_run"]
    typer.echo(
        f"a training run's CPU: {share['network_cpu_share']:.1%} network, {share['ledger_cpu_share']:.1%} ledger"
    )
