"""`pushcen forget`, `refound` and `audit`: who belongs to a network no more, and where its mass is."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pushcen.runtime.security.authority import Authority
    from pushcen.runtime.wire import Signed

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The authority's folder.")]
To = Annotated[list[str], typer.Option(metavar="HOST:PORT", help="A running peer, which tells others; repeatable.")]


def forget(
    peer: Annotated[str, typer.Argument(metavar="NAME/EPOCH", help="The peer, as logs and audits name it.")],
    authority: Annotated[Path, typer.Option(help="The authority's folder.")],
    to: To,
) -> None:
    """Write off the mass of a peer that is gone for good: links to and from it are closed, on every peer.

    This cannot be undone: if it comes back after all, it goes on in a new epoch, with no mass.
    """
    from pushcen.protocol.messages import check_id
    from pushcen.runtime.security.authority import Authority

    check_addresses(to)
    keeper = Authority.open(authority)
    tell(keeper, keeper.forget(check_id(peer)), to)


def refound(
    authority: Folder,
    to: To,
    founders: Annotated[
        str, typer.Option(help="Who begins with one unit of mass, separated by commas [send the last record again].")
    ] = "",
    generation: Annotated[
        int | None,
        typer.Option(min=1, help="Its number [the next]; for an authority that lost count."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="What all run with from then on; may be repeated."),
    ] = None,
    weights: Annotated[
        str, typer.Option(help="present, or new: all begin from their task's first weights.")
    ] = "present",
) -> None:
    """Found a network anew: all earlier mass is void, and the founders begin with one unit each.

    The last resort, after an attack or when too many disks were lost; and how a method or model is changed for all
    (--set). All other peers, and those that come back later, go on with no mass, from their models as they are. It
    cannot be undone, but it can be done again.
    """
    from pushcen.errors import OptionError
    from pushcen.runtime.security.authority import Authority

    check_addresses(to)
    if weights not in ("present", "new"):
        raise OptionError(f"--weights {weights}: must be present or new")
    keeper, new = Authority.open(authority), weights == "new"
    changes = _changes(settings or [])
    if founders or changes or new:
        names = [name.strip() for name in founders.split(",")] if founders else keeper.generation().founders
        record = keeper.refound(names, generation, changes, new_weights=new)
    elif keeper.generation().number and generation is None:
        record = keeper.newest_refound()
    else:
        raise OptionError("--founders NAME,NAME: is needed, as this network has not been founded anew before")
    now = keeper.generation()
    typer.echo(f"generation {now.number}, founded by {', '.join(now.founders)}; the record is in {authority}")
    for key, value in now.settings.items():
        typer.echo(f"    {key} = {value}")
    tell(keeper, record, to, f"`pushcen refound {authority} --to HOST:PORT` tells it again")


def audit(
    folders: Annotated[list[Path], typer.Argument(metavar="STATE", help="State folders of peers, stopped or running.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Check the ledgers of peers against each other: whether mass was lost or made, and where all of it is.

    Exits with 0 if everything was seen and adds up; else with 1, and says what cannot be and what was not seen.
    """
    from pushcen.protocol import UNIT
    from pushcen.runtime.audit import examine

    findings = examine(folders)
    found = findings.mass
    if as_json:
        more = {key: value for key, value in findings.__dict__.items() if key != "mass"}
        typer.echo(json.dumps({**found.__dict__, "balanced": found.balanced, **more}, indent=2))
    else:
        for name in ("founded", "held", "on_links", "written_off"):
            typer.echo(f"{name.replace('_', ' '):12} {getattr(found, name) / UNIT:14.9f}")
        for rule, mass in found.destroyed.items():
            typer.echo(f"destroyed    {mass / UNIT:14.9f}  ({rule})")
        for who, mass in found.missing.items():
            typer.echo(f"missing      {mass / UNIT:14.9f}  (at {who})")
        for sentence in findings.wrong:
            typer.echo(f"CANNOT BE    {sentence}")
        for sentence in findings.unseen:
            typer.echo(f"NOT SEEN     {sentence}")
        if not findings.still:
            typer.echo("peers are running: what cannot be is certain, sums are only near")
        if findings.sound:
            typer.echo("every quantum is somewhere")
    if not findings.sound:
        raise typer.Exit(1)


def _changes(settings: list[str]) -> dict[str, str]:
    """Read what is to be changed for all; mistakes in it are found here, as far as no code is named."""
    from pushcen.config import parse_settings
    from pushcen.errors import OptionError
    from pushcen.runtime.network import WEIGHTS, check_settings
    from pushcen.runtime.setup import peer_config

    changes = {key: str(value) for key, value in parse_settings(settings).items()}
    changes = {"method.name" if key == "method" else key: value for key, value in changes.items()}
    try:
        check_settings(changes, 1)
    except ValueError as error:
        raise OptionError(f"--set: {error}") from None
    if WEIGHTS in changes:
        raise OptionError("--set weights: say --weights new")
    if changes and not any(":" in value for value in changes.values()):
        peer_config("", settings)
    return changes


def check_addresses(to: list[str]) -> None:
    """Find mistakes in addresses before anything is signed."""
    from pushcen.runtime.members import check_address

    for address in to:
        check_address(address)


def tell(authority: "Authority", record: "Signed", to: list[str], again: str = "say it again") -> None:
    """Send a signed record to running peers, which keep it and pass it on: one that has it is enough."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    import asyncio

    from pushcen.errors import NetworkError
    from pushcen.runtime.operator import deliver

    told = 0
    for address in to:
        try:
            asyncio.run(deliver(authority, record, address))
            told += 1
            typer.echo(f"{address} has it, and passes it on")
        except NetworkError as error:
            typer.echo(f"not told: {error}", err=True)
    if not told:
        raise NetworkError(f"nobody was told: {again}")
    typer.echo(f"told {told} of {len(to)}")
