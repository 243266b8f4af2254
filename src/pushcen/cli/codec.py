"""`pushcen codec ...`: the codec by itself, on models everybody knows."""

import typer

app = typer.Typer(help="The codec by itself: what it makes of two models, and what it costs.", no_args_is_help=True)
