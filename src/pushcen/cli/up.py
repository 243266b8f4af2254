"""`pushcen up`: a network of real processes on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pushcen.cli.peer import Settings

if TYPE_CHECKING:
    from rich.table import Table

    from pushcen.runtime.local import LocalNetwork


def up(
    task: Annotated[str, typer.Argument(help="module:function, a preset or a TOML file.")] = "digits",
    peers: Annotated[int, typer.Option(min=2, help="How many peers.")] = 8,
    events: Annotated[int, typer.Option(min=1, help="Compute events of each.")] = 20,
    folder: Annotated[Path | None, typer.Option(help="A new folder for it all [a temporary one].")] = None,
    timeout: Annotated[float, typer.Option(help="Give up after so many seconds.")] = 3600.0,
    settings: Settings = None,
) -> None:
    """Start a network on loopback, with certificates; show it live; stop it and audit its mass.

    Events begin half a second apart at least, so that no peer is done before the others have started.

    What it leaves is a run folder: `pushcen report FOLDER` draws it.
    """
    import tempfile
    import time

    from rich.console import Console
    from rich.live import Live
    from rich.markup import escape

    from pushcen.config import parse_settings
    from pushcen.errors import NetworkError, OptionError
    from pushcen.protocol import UNIT
    from pushcen.runtime.audit import examine
    from pushcen.runtime.config import peer_config
    from pushcen.runtime.local import LocalNetwork
    from pushcen.runtime.run import write_run

    console = Console(highlight=False)
    given = {"clients": str(peers), "runtime.start_with": str(min(peers - 1, 7)), "runtime.pause": "0.5"}
    given |= parse_settings(settings or [])
    config = peer_config(task, [f"{key}={value}" for key, value in given.items()])
    folder = folder or Path(tempfile.mkdtemp(prefix="pushcen-"))
    if folder.exists() and any(folder.iterdir()):
        raise OptionError(f"--folder {folder}: must be empty, or not there")
    with console.status("making certificates ..."):
        network = LocalNetwork(folder, task, peers, events, given)
    begun = time.monotonic()
    try:
        network.start()
        with Live(_table(network), console=console, refresh_per_second=2) as live:
            while not network.finished():
                time.sleep(0.5)
                live.update(_table(network))
                if time.monotonic() - begun > timeout:
                    raise NetworkError(f"not finished after {timeout:.0f} s; logs are in {folder}")
            live.update(_table(network))
    finally:
        network.stop()
    findings = examine([network.state(name) for name in network.names])
    found = findings.mass
    summary = write_run(network, config, found)
    console.print(f"accuracy {summary['final']['accuracy']:.2%}, mean of {peers} peers, each on its own test data")
    console.print(
        f"mass: founded {found.founded / UNIT:g}, held {found.held / UNIT:.6f}, on links {found.on_links / UNIT:.6f}"
    )
    console.print(f"run folder: {folder}", soft_wrap=True)
    if not findings.sound:
        for sentence in (*findings.wrong, *findings.unseen):
            console.print(f"[bold red]audit:[/] {escape(sentence)}", soft_wrap=True)
        raise typer.Exit(1)
    console.print("audit: every quantum is somewhere")


def _table(network: "LocalNetwork") -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(
        title="pushcen up",
        caption="mass: held, and in the mailbox; near: neighbours that answer; stale: how long models waited",
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 0, 0, 1),
    )
    for name in ("peer", "events", "accuracy", "loss", "mass", "waits", "MB out", "MB in", "near", "stale"):
        table.add_column(name, justify="left" if name == "peer" else "right")
    for name in network.names:
        rows = network.rows(name)
        if not rows:
            table.add_row(name, "starting")
            continue
        last, accuracy = rows[-1], network.accuracy(name)
        stale = last["staleness"]
        table.add_row(
            name,
            str(last["events"]),
            "" if accuracy is None else f"{accuracy:.1%}",
            f"{last['loss']:.3f}",
            f"{last['held']:.4f}",
            f"{last['waiting']:.4f}",
            f"{last['bytes_out'] / 1e6:.2f}",
            f"{last['bytes_in'] / 1e6:.2f}",
            str(last["neighbours"]),
            "" if stale is None else f"{stale:.2f} s",
        )
    return table
