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

    Exits with 0 if everything was seen and adds up, else with 1: what cannot be, and what was not seen, is said.
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
