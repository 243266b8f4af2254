"""`pushcen bench protocol`: how fast the protocol core is, how much a link weighs, how well a bounded view mixes."""

import json
from typing import Annotated

import typer


def protocol(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; docs/protocol.md explains the keys.")] = False,
    events: Annotated[int, typer.Option(min=1, help="Compute events in each round of the speed measurement.")] = 15_000,
) -> None:
    """Measure the protocol core alone, at 1,000, 10,000 and 100,000 peers."""
    from pushcen.bench.protocol import run

    result = run(events)
    if as_json:
        typer.echo(json.dumps(result, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Protocol core, one process, pure Python", title_justify="left")
    table.add_column("what")
    table.add_column("measured", justify="right")
    for peers, rate in result["events_per_second_by_peers"].items():
        table.add_row(f"events per CPU second, {int(peers):,} peers", f"{rate:,}")
    for peers, links in result["links_per_peer_by_peers"].items():
        table.add_row(f"links per peer, {int(peers):,} peers", f"{links:,}")
    table.add_row("time per event, most peers over fewest", f"{result['time_per_event_growth']:.2f} x")
    table.add_row("bytes per link, both ends", f"{result['bytes_per_link']:.0f}")
    for kind, spread in result["spread_after_8_pushes"].items():
        table.add_row(f"spread of 1 after 8 pushes each, {kind}", f"{spread:.2e}")
    Console().print(table)
