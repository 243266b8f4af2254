"""The command that writes a starting point for a task of one's own."""

from pathlib import Path
from typing import Annotated

import typer


def new(
    folder: Annotated[Path, typer.Argument(metavar="NAME", help="A new folder.")],
    kind: Annotated[str, typer.Option(help="images, table, text or own.")] = "own",
) -> None:
    """Write a starting point: a commented task with a test, a config, a README of three commands that work at once."""
    from pushcen.starters import write_starter

    written = write_starter(folder, kind)
    typer.echo(f"{folder}: {', '.join(written)}")
    typer.echo(f"Next: cd {folder} && python test_task.py && pushcen simulate config.toml")
