"""The command `pushcen`: arguments in, tables out.

Each group of commands has a file of its own here; the work itself is done elsewhere and imported only when a command
runs, so that `pushcen --help` answers at once, without torch.
"""

import inspect
import traceback
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperGroup

import pushcen
from pushcen.bench import commands as bench
from pushcen.cli import (
    certs,
    codec,
    compare,
    data,
    network,
    new,
    peer,
    report,
    reproduce,
    simulate,
    status,
    sweep,
    watch,
)
from pushcen.errors import TransientError


class _Commands(TyperGroup):
    """Shows an error of pushcen's as one line, not as a traceback, and help texts as they are written."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        _prepare_help(self)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take `--traceback` wherever it stands, before the command's name or after it."""
        end = args.index("--") if "--" in args else len(args)
        rest = [arg for at, arg in enumerate(args) if arg != "--traceback" or at > end]
        return super().parse_args(ctx, rest if len(rest) == len(args) else ["--traceback", *rest])

    def invoke(self, ctx: Any) -> Any:
        warnings.formatwarning = _plainly
        try:
            return super().invoke(ctx)
        except pushcen.PushcenError as error:
            if ctx.params.get("traceback"):
                traceback.print_exception(error)
            Console(stderr=True, highlight=False).print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True)
            raise typer.Exit(75 if isinstance(error, TransientError) else 2) from None  # as EX_TEMPFAIL


_FORMAT = warnings.formatwarning
_OURS = str(Path(__file__).parents[1])


def _plainly(message: Any, category: type[Warning], filename: str, lineno: int, line: str | None = None) -> str:
    """Write a warning of pushcen's own as one line, without where in pushcen it came from."""
    return f"warning: {message}\n" if filename.startswith(_OURS) else _FORMAT(message, category, filename, lineno, line)


def _prepare_help(command: Any) -> None:
    """Break help texts where the terminal ends, not where the source does, and keep `[as many as cores]` as it is.

    Rich would read what is in brackets as markup, and leave it out.
    """
    for shown in (command, *command.params):
        if getattr(shown, "help", None):
            paragraphs = inspect.cleandoc(shown.help).split("\n\n")
            shown.help = escape("\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs))
    for inner in getattr(command, "commands", {}).values():
        _prepare_help(inner)


app = typer.Typer(
    name="pushcen",
    cls=_Commands,
    help="Asynchronous, decentralized federated learning: no server, no rounds, small messages.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
for _command in (
    new.new,
    simulate.simulate,
    compare.compare,
    sweep.sweep,
    report.report,
    watch.watch,
    reproduce.reproduce,
    report.export,
    peer.up,
    peer.peer,
    status.status,
    peer.rollback,
    network.audit,
    network.forget,
    network.refound,
):
    app.command()(_command)
for _name, _group in {
    "bench": bench.app,
    "certs": certs.app,
    "codec": codec.app,
    "data": data.app,
}.items():
    app.add_typer(_group, name=_name)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"pushcen {pushcen.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    traceback: Annotated[bool, typer.Option("--traceback", help="With an error, show where it comes from.")] = False,
) -> None:
    """Train one model among many owners of private data."""


__all__ = ["app"]
