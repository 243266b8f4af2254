"""`pushcen refound`: let a network be founded anew, by those who are left."""

from pathlib import Path
from typing import Annotated

import typer


def refound(
    authority: Annotated[Path, typer.Argument(help="The authority's folder.")],
    to: Annotated[list[str], typer.Option(metavar="HOST:PORT", help="A running peer, which passes it on; or several.")],
    founders: Annotated[
        str, typer.Option(help="Who founds it with one unit of mass each, separated by commas; none: tell it again.")
    ] = "",
    generation: Annotated[
        int | None,
        typer.Option(min=1, help="Its number, if not the next; for an authority that lost count."),
    ] = None,
) -> None:
    """Found a network anew: all mass of before counts no more, and the peers that are named begin with one unit each.

    The last resort, after an attack or when too many disks were lost. Everybody else, and who comes back later, goes on
    with no mass, from the models as they are. That cannot be undone, but it can be done again.
    """
    from pushcen.cli.certs import tell
    from pushcen.errors import NetworkError, OptionError
    from pushcen.runtime.authority import Authority

    keeper = Authority.open(authority)
    if founders:
        record = keeper.refound([name.strip() for name in founders.split(",")], generation)
    elif keeper.generation().number and generation is None:
        record = keeper.newest_refound()
    else:
        raise OptionError("--founders NAME,NAME: is needed, as this network was not founded anew yet")
    now = keeper.generation()
    typer.echo(f"generation {now.number}, founded by {', '.join(now.founders)}; the record is in {authority}")
    told = 0
    for address in to:
        try:
            tell(keeper, record, address)
            told += 1
        except NetworkError as error:
            typer.echo(f"not told: {error}", err=True)
    if not told:
        raise NetworkError(f"nobody was told: `pushcen refound {authority} --to HOST:PORT` tells it again")
