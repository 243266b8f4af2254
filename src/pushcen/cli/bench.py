"""`pushcen bench ...`: measurements, side by side in one process, as a table or as JSON."""

import typer

from pushcen.cli.bench_protocol import protocol

app = typer.Typer(help="Measure, side by side in one run, on this machine.", no_args_is_help=True)
app.command("protocol")(protocol)
