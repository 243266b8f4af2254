"""`pushcen peer` and `up`: one peer of a real network, and a whole network of processes on this machine."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pushcen.cli.options import RealMethodName, Set
from pushcen.cli.watch import NoBrowser, WatchIt, recorded, watched

if TYPE_CHECKING:
    from rich.table import Table

    from pushcen.measure import Measure
    from pushcen.runtime.local import LocalNetwork

Task = Annotated[
    str, typer.Argument(metavar="TASK", help="file.py:function, module:function, a preset or a TOML file.")
]
SiteTask = Annotated[
    str,
    typer.Argument(
        metavar="TASK", help="file.py:function, module:function, a preset or a TOML file; not needed with --data."
    ),
]
Metrics = Annotated[str, typer.Option(metavar="HOST:PORT", help="Serve Prometheus metrics here.")]


def peer(
    state: Annotated[Path, typer.Option(help="Its state folder; if a peer is in it, that one goes on.")],
    listen: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Where this peer listens [nowhere: it dials out, and others host it]."),
    ] = "",
    task: SiteTask = "",
    data: Annotated[
        str, typer.Option(metavar="FILE", help="This site's own table, CSV or parquet, all of it, with --columns.")
    ] = "",
    columns: Annotated[
        str, typer.Option(metavar="FILE", help="What `pushcen data columns` wrote: the same at every site.")
    ] = "",
    label: Annotated[str, typer.Option(help="The column to learn [as --columns says].")] = "",
    method: RealMethodName = None,
    certs: Annotated[Path | None, typer.Option(help="Its folder of certificates: `pushcen certs`.")] = None,
    join: Annotated[
        list[str] | None, typer.Option(metavar="HOST:PORT", help="A peer to start from; may be repeated.")
    ] = None,
    proxy: Annotated[str, typer.Option(metavar="HOST:PORT", help="Go out through this HTTP proxy (CONNECT).")] = "",
    advertise: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where others reach it [as --listen].")] = "",
    events: Annotated[
        int | None, typer.Option(min=0, help="Train for so many compute events [until it is stopped].")
    ] = None,
    client: Annotated[
        int | None, typer.Option(min=0, help="Number of its share of the data [its place among founders].")
    ] = None,
    clients: Annotated[
        int | None, typer.Option(min=1, help="Into how many shares the data is divided [one for each founder].")
    ] = None,
    metrics: Metrics = "",
    http: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Serve a page of this peer here, as 127.0.0.1:8080 (docs/watch.md)."),
    ] = "",
    http_token: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The token that whoever reads that page must have.")
    ] = None,
    leave: Annotated[bool, typer.Option("--leave", help="Hand all mass over to others, then stop for good.")] = False,
    moved: Annotated[
        bool, typer.Option("--moved", help="The state folder was moved here for good: it is no backup.")
    ] = False,
    insecure: Annotated[
        str, typer.Option(metavar="NAME", help="No certificates: be NAME, on this machine only. Anyone can lie.")
    ] = "",
    founders: Annotated[str, typer.Option(help="With --insecure: who starts with mass, separated by commas.")] = "",
    log: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    log_format: Annotated[str, typer.Option(help="text, json, or auto: text on a terminal, json else.")] = "auto",
    settings: Set = None,
) -> None:
    """Run one peer: it trains, pushes to others and takes in what they push, until it is told to stop.

    SIGTERM and SIGINT stop it; started again on its state folder, it goes on. SIGUSR1 makes it leave, as --leave does.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # gRPC's own lines on every failed handshake would fill the log
    import asyncio
    import logging

    from pushcen.cli.watch import page_of_peer
    from pushcen.errors import OptionError
    from pushcen.runtime import logs

    logs.set_up(log, log_format)
    logging.getLogger("pushcen").info("loading PyTorch")

    import torch

    from pushcen.runtime.gate import raise_descriptors
    from pushcen.runtime.peer import run_peer
    from pushcen.runtime.security.identity import Certified, Identity, Insecure
    from pushcen.runtime.setup import Setup, peer_config

    raise_descriptors()
    if not task and not data:
        raise OptionError("TASK: is needed (or --data FILE, a table of this site)")
    if data:
        if not columns:
            raise OptionError("--columns FILE: is needed with --data: all sites must encode alike")
        client = client or 0
        clients = clients or client + 1
    site = {"data.source": data, "data.columns": columns, "data.label": label, "method.name": method}
    given = [*(f"{key}={value}" for key, value in site.items() if value), *(settings or ())]
    peer_config(task, given)  # whose mistakes come first
    if (certs is None) == (not insecure):
        raise OptionError("--certs FOLDER: is needed (or --insecure NAME, to try things out on one machine)")
    identity: Identity
    if certs is not None:
        identity = Certified(certs)
    else:
        identity = Insecure(insecure, tuple(name for name in founders.split(",") if name))
        typer.echo("warning: --insecure: no encryption, and every peer is believed; on this machine only", err=True)
    if not (listen or join or state.exists()):
        raise OptionError("--join HOST:PORT: is needed by a peer that does not listen: somebody has to host it")
    names = identity.network.founders
    if client is None:
        client = names.index(identity.name) if identity.name in names else 0
    clients = clients or max(len(names), client + 1)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "0")) or torch.get_num_threads())
    shown = page_of_peer(http, http_token)

    def configure(changes: Mapping[str, str]) -> Setup:
        config = peer_config(task, given, changes)
        return Setup(
            identity, config.task_function(), state, listen, tuple(join or ()), advertise, config.method,
            config.training, config.runtime, config.seed, client, clients, metrics, certs, moved, proxy=proxy,
            neighbours=config.neighbours, staleness=config.staleness.in_units(float(config.seconds or 1)),
            sparsity=config.sparsity, shown=shown, configure=configure,
        )  # fmt: skip

    asyncio.run(run_peer(configure({}), events, leave=leave))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # without waiting for a compute event, which is undone


def rollback(
    state: Annotated[Path, typer.Argument(metavar="STATE", help="The state folder of a peer that is stopped.")],
    events: Annotated[
        int | None, typer.Option(min=1, help="To the weights after so many compute events [the best that were kept].")
    ] = None,
) -> None:
    """Go back to the best weights of a peer, by its own test data; only the weights.

    Its mass, epoch, sequence and boot go on: to the others it is as if it had trained its way there.
    """
    from pushcen.runtime.kept import roll_back

    kept = roll_back(state, events)
    typer.echo(f"{state}: has the weights after {kept.events} compute events again, whose score was {kept.score:g}")


def up(
    task: Task = "digits",
    peers: Annotated[int, typer.Option(min=2, help="How many peers.")] = 8,
    events: Annotated[int, typer.Option(min=1, help="Compute events of each peer.")] = 20,
    folder: Annotated[Path | None, typer.Option(help="A new folder for everything [a temporary one].")] = None,
    timeout: Annotated[float, typer.Option(help="Give up after so many seconds.")] = 3600.0,
    watch: WatchIt = False,
    no_browser: NoBrowser = False,
    method: RealMethodName = None,
    settings: Set = None,
) -> None:
    """Start a network on loopback, with certificates; show it live; stop it and audit its mass.

    Events begin at least half a second apart, so that no peer is done before the others have started. What is left is
    a run folder, which `pushcen report FOLDER` draws.
    """
    import tempfile
    import time

    from rich.console import Console
    from rich.live import Live
    from rich.markup import escape

    from pushcen.config import parse_settings
    from pushcen.errors import NetworkError, OptionError
    from pushcen.measure import read
    from pushcen.protocol import UNIT
    from pushcen.runtime.audit import examine
    from pushcen.runtime.local import LocalNetwork
    from pushcen.runtime.run import write_run
    from pushcen.runtime.setup import peer_config

    console = Console(highlight=False)
    given = {"clients": str(peers), "runtime.start_with": str(min(peers - 1, 7)), "runtime.pause": "0.5"}
    given |= ({} if method is None else {"method.name": method}) | parse_settings(settings or [])
    config = peer_config(task, [f"{key}={value}" for key, value in given.items()])
    folder = folder or Path(tempfile.mkdtemp(prefix="pushcen-"))
    if folder.exists() and any(folder.iterdir()):
        raise OptionError(f"--folder {folder}: must be empty, or not exist")
    with console.status("making certificates ..."):
        network = LocalNetwork(folder, task, peers, events, given)
    with watched([folder], on=watch, browser=not no_browser):
        begun = time.monotonic()
        with recorded(network, config, on=watch) as record:
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
                if record is not None:
                    record.end()
                network.stop()
        findings = examine([network.state(name) for name in network.names])
        found = findings.mass
        summary = write_run(network, config, found, None if record is None else record.began)
        measure = read(summary)[0]
        reached = _shown(measure, summary["final"][measure.name], 2)
        console.print(f"{measure.title} {reached}, mean of {peers} peers, each on its own test data")
        held, on_links = found.held / UNIT, found.on_links / UNIT
        console.print(f"mass: founded {found.founded / UNIT:g}, held {held:.6f}, on links {on_links:.6f}")
        console.print(f"run folder: {folder}", soft_wrap=True)
        if not findings.sound:
            for sentence in (*findings.wrong, *findings.unseen):
                console.print(f"[bold red]audit:[/] {escape(sentence)}", soft_wrap=True)
            raise typer.Exit(1)
        console.print("audit: every quantum is somewhere")


def _shown(measure: "Measure", value: float | None, digits: int) -> str:
    return f"{value:.{digits}%}" if measure.percent and value is not None else measure.show(value)


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
    measure = network.measure
    for name in ("peer", "events", measure.title, "loss", "mass", "waits", "MB out", "MB in", "near", "stale"):
        table.add_column(name, justify="left" if name == "peer" else "right")
    for name in network.names:
        rows = network.rows(name)
        if not rows:
            table.add_row(name, "starting")
            continue
        last, reached = rows[-1], network.score(name)
        stale = last["staleness"]
        table.add_row(
            name,
            str(last["events"]),
            "" if reached is None else _shown(measure, reached, 1),
            f"{last['loss']:.3f}",
            f"{last['held']:.4f}",
            f"{last['waiting']:.4f}",
            f"{last['bytes_out'] / 1e6:.2f}",
            f"{last['bytes_in'] / 1e6:.2f}",
            str(last["neighbours"]),
            "" if stale is None else f"{stale:.2f} s",
        )
    return table
