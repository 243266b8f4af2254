"""The command `pushcen`: arguments in, tables out.

Each group of commands has a file of its own here; the work itself is done elsewhere and imported only when a command
runs, so that `pushcen --help` answers at once, without torch.
"""

import traceback
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperGroup

import pushcen
from pushcen.bench import commands as bench
from pushcen.cli import (
    audit,
    certs,
    codec,
    compare,
    data,
    export,
    forget,
    peer,
    refound,
    report,
    reproduce,
    simulate,
    sweep,
    up,
)
from pushcen.errors import TransientError


class _Commands(TyperGroup):
    """Shows what pushcen refuses as one line, not as a traceback, and help texts as they are written."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        _escape_help(self)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take `--traceback` wherever it stands, before the command's name or after it."""
        end = args.index("--") if "--" in args else len(args)
        rest = [arg for at, arg in enumerate(args) if arg != "--traceback" or at > end]
        return super().parse_args(ctx, rest if len(rest) == len(args) else ["--traceback", *rest])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except pushcen.PushcenError as error:
            if ctx.params.get("traceback"):
                traceback.print_exception(error)
            Console(stderr=True, highlight=False).print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True)
            raise typer.Exit(75 if isinstance(error, TransientError) else 2) from None  # as EX_TEMPFAIL


def _escape_help(command: Any) -> None:
    """Keep rich from reading `[as many as cores]` in a help text as markup, and leaving it out."""
    for shown in (command, *command.params):
        if getattr(shown, "help", None):
            shown.help = escape(shown.help)
    for inner in getattr(command, "commands", {}).values():
        _escape_help(inner)


app = typer.Typer(
    name="pushcen",
    cls=_Commands,
    help="Asynchronous, decentralized federated learning: no server, no rounds, small messages.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)
app.command()(simulate.simulate)
app.command()(compare.compare)
app.command()(sweep.sweep)
app.command()(report.report)
app.command()(reproduce.reproduce)
app.command()(export.export)
app.command()(up.up)
app.command()(peer.peer)
app.command()(audit.audit)
app.command()(forget.forget)
app.command()(refound.refound)
app.add_typer(bench.app, name="bench")
app.add_typer(certs.app, name="certs")
app.add_typer(codec.app, name="codec")
app.add_typer(data.app, name="data")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"pushcen {pushcen.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Where something is refused, show where it came from.")
    ] = False,
) -> None:
    """Train one model among many owners of private data."""


__all__ = ["app"]
