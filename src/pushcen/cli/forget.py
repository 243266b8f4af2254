"""`pushcen forget`: write off a peer that is gone for ever."""

from pathlib import Path
from typing import Annotated

import typer


def forget(
    peer: Annotated[str, typer.Argument(metavar="NAME/EPOCH", help="The peer, as logs and audits name it.")],
    authority: Annotated[Path, typer.Option(help="The authority's folder.")],
    to: Annotated[str, typer.Option(metavar="HOST:PORT", help="A running peer, which passes it on.")],
) -> None:
    """Write off the mass of a peer that is gone for ever: links to and from it are closed, on every peer.

    If it comes back after all, it goes on in a new epoch, with no mass. That cannot be undone.
    """
    from pushcen.cli.certs import tell
    from pushcen.protocol.messages import check_id
    from pushcen.runtime.authority import Authority

    keeper = Authority.open(authority)
    tell(keeper, keeper.forget(check_id(peer)), to)
