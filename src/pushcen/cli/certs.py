"""`pushcen certs ...`: a network's authority, and the certificates of its peers."""

from pathlib import Path
from typing import Annotated

import typer

from pushcen.cli.network import Folder, To, check_addresses, tell

app = typer.Typer(help="A network's authority and the certificates of its peers.", no_args_is_help=True)
Days = Annotated[int, typer.Option(min=1, help="How many days they are valid.")]
Out = Annotated[Path | None, typer.Option(help="The folder for the files of a single peer [FOLDER/NAME].")]


@app.command()
def init(
    folder: Folder,
    founder: Annotated[list[str], typer.Option(help="A peer that starts with mass; may be repeated.")],
    network: Annotated[str, typer.Option(help="The network's name.")] = "network",
    days: Annotated[int, typer.Option(min=1, help="How many days the authority's certificate is valid.")] = 3650,
) -> None:
    """Make a network: its authority, and the signed description of who founded it."""
    from pushcen.runtime.security.authority import Authority

    authority = Authority.found(folder, network, founder, days)
    typer.echo(f"network {network}, founded by {', '.join(founder)}; fingerprint {authority.network.fingerprint}")
    typer.echo(f"keep {folder / 'authority.key'} safe, and off the peers; next: at each site, pushcen certs request")


@app.command()
def issue(
    folder: Folder,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Peers to make certificates for.")],
    days: Days = 365,
    out: Out = None,
) -> None:
    """Make a key and a certificate for each peer, in a folder to take to its machine: for trying things out.

    Whoever runs this has every peer's key. Where that must not be, each site makes its own: request and sign.
    """
    from pushcen.errors import OptionError
    from pushcen.runtime.security.authority import Authority

    if out is not None and len(names) > 1:
        raise OptionError(f"--out {out}: is for one peer's files, not for those of {', '.join(names)}")
    authority = Authority.open(folder)
    for name in names:
        typer.echo(f"{name}: take {authority.issue(name, days, out)} to its machine, for `pushcen peer --certs`")
    typer.echo("these keys were made here: for trying things out; sites that keep their keys: `certs request`, `sign`")


@app.command()
def request(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The peer's folder, for `pushcen peer --certs`.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The peer [of the certificate that is there].")] = "",
) -> None:
    """At a site: make a key, which stays here, and a request for a certificate; or ask again for a newer one."""
    from pushcen.runtime.security.certificates import member_of, read_certificate
    from pushcen.runtime.security.requests import make_request

    fingerprint = make_request(folder, name)
    name = name or member_of(read_certificate(folder / "peer.pem"))[1]
    typer.echo(f"key of {name}: {fingerprint}")
    typer.echo(f"send {folder / 'peer.csr'} to the authority, and nothing else; compare the digits by telephone")


@app.command()
def sign(
    folder: Folder,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The peer that the request must be of.")],
    csr: Annotated[Path, typer.Argument(metavar="REQUEST", help="The peer.csr that its site sent.")],
    days: Days = 365,
    out: Out = None,
) -> None:
    """At the authority: make a certificate for a key that a site made, and keeps.

    Only the key of the request counts. Compare its digits with what the site reads out, before sending the answer.
    """
    from pushcen.runtime.security.authority import Authority
    from pushcen.runtime.security.certificates import fingerprint_of
    from pushcen.runtime.security.requests import read_request

    authority = Authority.open(folder)
    key = read_request(csr, name)
    others = {entry["key"] for entry in authority.issued() if entry["name"] == name and entry.get("key")}
    answer = authority.sign(name, key, days, out)
    typer.echo(f"key of {name}: {fingerprint_of(key)}")
    typer.echo(f"key of the authority: {fingerprint_of(authority.key.public_key())}")
    if others - {fingerprint_of(key)}:
        typer.echo(f"note: {name} has had other keys, whose certificates hold until they end or are revoked")
    typer.echo(f"if these are the digits that the site reads out: take all of {answer} to its folder of certificates")


@app.command()
def revoke(
    folder: Folder,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The peer.")],
    to: To = [],  # noqa: B006
) -> None:
    """Revoke all certificates of a peer. Tell running peers; they tell the others."""
    from pushcen.runtime.security.authority import Authority

    check_addresses(to)
    authority = Authority.open(folder)
    record = authority.revoke(name)
    typer.echo(f"revoked {name}; the new list is {folder / 'revoked.signed'}")
    if to:
        tell(authority, record, to)
    else:
        typer.echo("it takes effect once a peer has it: --to HOST:PORT, or copy it to a peer's certificates")


@app.command()
def show(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of an authority, or of a peer.")],
) -> None:
    """Show a network, and who has certificates of it."""
    from rich.console import Console
    from rich.table import Table

    from pushcen.runtime.security.authority import Authority, read_signed, read_trust
    from pushcen.runtime.security.certificates import fingerprint_of, member_of, read_certificate

    console, trust = Console(highlight=False), read_trust(folder)
    network = trust.network
    console.print(f"network {network.name}, fingerprint {network.fingerprint}, list of revoked number {trust.revision}")
    console.print(f"key of the authority: {fingerprint_of(trust.root.public_key())}")  # type: ignore[arg-type]
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
