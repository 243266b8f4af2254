"""`pushcen peer`: one peer of a real network."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

Task = Annotated[str, typer.Argument(help="module:function, a preset or a TOML file; as for `pushcen simulate`.")]
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any option of the config.")]
Metrics = Annotated[str, typer.Option(metavar="HOST:PORT", help="Serve Prometheus metrics here.")]


def peer(
    task: Task,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where this peer listens.")],
    state: Annotated[Path, typer.Option(help="Its state folder; if it has a peer in it, that one goes on.")],
    certs: Annotated[Path | None, typer.Option(help="Its folder of certificates, from `pushcen certs issue`.")] = None,
    join: Annotated[
        list[str] | None, typer.Option(metavar="HOST:PORT", help="A peer to start from; may be given often.")
    ] = None,
    advertise: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where others reach it [as --listen].")] = "",
    events: Annotated[int | None, typer.Option(min=0, help="Train for so many compute events [for ever].")] = None,
    client: Annotated[int | None, typer.Option(min=0, help="Number of its share of the data [as founder].")] = None,
    clients: Annotated[int | None, typer.Option(min=1, help="Into how many shares that is divided.")] = None,
    metrics: Metrics = "",
    leave: Annotated[bool, typer.Option("--leave", help="Hand all mass over to others, then stop for good.")] = False,
    moved: Annotated[
        bool, typer.Option("--moved", help="The state folder was moved here for good: it is no backup.")
    ] = False,
    insecure: Annotated[
        str, typer.Option(metavar="NAME", help="No certificates: be NAME, on this machine only. Anyone can lie.")
    ] = "",
    founders: Annotated[str, typer.Option(help="With --insecure: who starts with mass, separated by commas.")] = "",
    log: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    settings: Settings = None,
) -> None:
    """Run one peer: it trains, pushes to others and takes in what they push, until it is told to stop.

    SIGTERM and SIGINT stop it; started again on its state folder it goes on. SIGUSR1 lets it leave, as --leave does.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # gRPC's own lines on every failed handshake would fill the log
    import asyncio

    import torch

    from pushcen.errors import OptionError
    from pushcen.runtime import logs
    from pushcen.runtime.config import peer_config
    from pushcen.runtime.identity import Certified, Identity, Insecure
    from pushcen.runtime.limits import raise_descriptors
    from pushcen.runtime.peer import Setup, run_peer

    logs.set_up(log)
    raise_descriptors()
    config = peer_config(task, settings or ())
    if (certs is None) == (not insecure):
        raise OptionError("--certs FOLDER: is needed (or --insecure NAME, to try things out on one machine)")
    identity: Identity
    if certs is not None:
        identity = Certified(certs)
    else:
        identity = Insecure(insecure, tuple(name for name in founders.split(",") if name))
        typer.echo("warning: --insecure: no encryption, and every peer is believed; on this machine only", err=True)
    names = identity.network.founders
    if client is None:
        client = names.index(identity.name) if identity.name in names else 0
    clients = clients or max(len(names), client + 1)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "0")) or torch.get_num_threads())
    setup = Setup(
        identity, config.task_function(), state, listen, tuple(join or ()), advertise, config.method, config.training,
        config.runtime, config.seed, client, clients, metrics, certs, moved,
    )  # fmt: skip
    asyncio.run(run_peer(setup, events, leave=leave))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # without waiting for a compute event, which is undone
