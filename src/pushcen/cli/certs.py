"""`pushcen certs ...`: who belongs to a network."""

import os
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="A network's authority and the certificates of its peers.", no_args_is_help=True)
Folder = Annotated[Path, typer.Argument(help="The authority's folder.")]
To = Annotated[str, typer.Option(metavar="HOST:PORT", help="Tell a running peer, which passes it on.")]


@app.command()
def init(
    folder: Folder,
    founder: Annotated[list[str], typer.Option(help="A peer that starts with mass; give it for each one.")],
    network: Annotated[str, typer.Option(help="The network's name.")] = "network",
    days: Annotated[int, typer.Option(min=1, help="How long the authority's certificate holds.")] = 3650,
) -> None:
    """Make a network: its authority, and the signed description of who founded it."""
    from pushcen.runtime.authority import Authority

    authority = Authority.found(folder, network, founder, days)
    typer.echo(f"network {network}, founded by {', '.join(founder)}; fingerprint {authority.network.fingerprint}")
    typer.echo(f"keep {folder / 'authority.key'} safe, and off the peers; next: pushcen certs issue {folder} NAME")


@app.command()
def issue(
    folder: Folder,
    names: Annotated[list[str], typer.Argument(help="Peers to make certificates for.")],
    days: Annotated[int, typer.Option(min=1, help="How long they hold.")] = 365,
    out: Annotated[Path | None, typer.Option(help="The folder for the one peer's files [FOLDER/NAME].")] = None,
) -> None:
    """Make a key and a certificate for each peer, in a folder to take to its machine."""
    from pushcen.errors import OptionError
    from pushcen.runtime.authority import Authority

    if out is not None and len(names) > 1:
        raise OptionError(f"--out {out}: is for one peer's files, not for those of {', '.join(names)}")
    authority = Authority.open(folder)
    for name in names:
        typer.echo(f"{name}: take {authority.issue(name, days, out)} to its machine, for `pushcen peer --certs`")


@app.command()
def revoke(folder: Folder, name: Annotated[str, typer.Argument(help="The peer.")], to: To = "") -> None:
    """Revoke all certificates of a peer. Tell one running peer; it tells the others."""
    from pushcen.runtime.authority import Authority

    authority = Authority.open(folder)
    record = authority.revoke(name)
    typer.echo(f"revoked {name}; the new list is {folder / 'revoked.signed'}")
    if to:
        tell(authority, record, to)
    else:
        typer.echo("it holds once a peer knows of it: --to HOST:PORT, or copy it into a peer's folder of certificates")


@app.command()
def show(folder: Annotated[Path, typer.Argument(help="The folder of an authority, or of a peer.")]) -> None:
    """Show a network, and who has certificates of it."""
    from rich.console import Console
    from rich.table import Table

    from pushcen.runtime.authority import Authority, read_signed, read_trust
    from pushcen.runtime.certificates import member_of, read_certificate

    console, trust = Console(highlight=False), read_trust(folder)
    network = trust.network
    console.print(f"network {network.name}, fingerprint {network.fingerprint}, list of revoked number {trust.revision}")
    console.print(f"founders: {', '.join(network.founders)}")
    if (folder / "refound.signed").exists():
        _, fields = trust.verify(read_signed(folder / "refound.signed"))
        console.print(f"generation {fields['generation']}, founded anew by {', '.join(fields['founders'])}")
    table = Table("peer", "serial", "until", "founder", "revoked")
    if (folder / "issued.json").exists():
        rows = [(e["name"], e["serial"], e["until"]) for e in Authority.open(folder).issued()]
    else:
        certificate = read_certificate(folder / "peer.pem")
        until = f"{certificate.not_valid_after_utc:%Y-%m-%d}"
        rows = [(member_of(certificate)[1], f"{certificate.serial_number:x}", until)]
    for name, serial, until in rows:
        marks = ["yes" if fact else "" for fact in (name in network.founders, int(serial, 16) in trust.revoked)]
        table.add_row(name, serial[:16], until, *marks)
    console.print(table)


def tell(authority: "object", record: "object", address: str) -> None:
    """Give a lasting record to a running peer."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    import asyncio

    from pushcen.runtime.operator import deliver

    asyncio.run(deliver(authority, record, address))  # type: ignore[arg-type]
    typer.echo(f"{address} knows, and passes it on")
