"""`pushcen bench ...`: measurements, side by side in one process, as a table or as JSON."""

import typer

app = typer.Typer(help="Measure, side by side in one run, on this machine.", no_args_is_help=True)
