"""`pushcen audit`: where all mass is."""

import json
from pathlib import Path
from typing import Annotated

import typer


def audit(
    folders: Annotated[list[Path], typer.Argument(help="State folders of peers, stopped or running.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the ledgers of peers against each other: whether mass was lost or made, and where it all is.

    Exits with 1 if mass was made, or, where all peers of the network are there and stand still, if any is missing.
    """
    from pushcen.protocol import UNIT
    from pushcen.runtime.audit import audit_folders, behind

    found, still = audit_folders(folders)
    late = behind(folders)
    if as_json:
        typer.echo(json.dumps({**found.__dict__, "balanced": found.balanced, "still": still, "behind": late}, indent=2))
    else:
        for name in ("founded", "held", "on_links", "written_off"):
            typer.echo(f"{name.replace('_', ' '):12} {getattr(found, name) / UNIT:14.9f}")
        for rule, mass in found.destroyed.items():
            typer.echo(f"destroyed    {mass / UNIT:14.9f}  ({rule})")
        for who, mass in found.missing.items():
            typer.echo(f"missing      {mass / UNIT:14.9f}  (at {who}, whose ledger is not here)")
        for v in found.violations:
            typer.echo(f"VIOLATION    {v}")
        for peer in late:
            typer.echo(f"behind       {peer} has not entered the newest generation: what it holds counts no more")
        if not still:
            typer.echo("peers are running: violations are real, sums are only near")
        elif not found.violations and found.balanced:
            typer.echo("every quantum is somewhere")
    if found.violations or (still and not found.balanced):
        raise typer.Exit(1)
