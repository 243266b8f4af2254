"""`pushcen status`: how a peer is, on one screen."""

import contextlib
import json
import shutil
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Group

    from pushcen.runtime.health import Problem
    from pushcen.runtime.status import Status

_EVERY = 2.0
_COLOURS = {"ok": "green", "warning": "yellow", "critical": "bold red"}


def status(
    state: Annotated[
        Path, typer.Argument(metavar="STATE", help="The state folder of a peer, running or stopped.")
    ] = Path("state"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again every two seconds, until Ctrl-C.")] = False,
) -> None:
    """Say how a peer is: who it is, what it holds, whom it hears from, what is wrong and what to do about it.

    Exits with 0 if all is well, 1 with a warning, 2 if something is wrong, as monitoring systems expect. It only reads.
    """
    from rich.console import Console
    from rich.live import Live

    from pushcen.runtime.health import LEVELS, level_of

    console = Console(highlight=False)
    if not watch:
        said, found, more = _look(state)
        if as_json:
            typer.echo(json.dumps(_plain(said, found, more), indent=2))
        else:
            console.print(_screen(said, found, more, time.time()))
        raise typer.Exit(LEVELS.index(level_of(found)))
    try:
        if as_json:
            while True:
                typer.echo(json.dumps(_plain(*_look(state))))
                time.sleep(_EVERY)
        with Live(console=console, screen=console.is_terminal, auto_refresh=False) as live:
            while True:
                live.update(_screen(*_look(state), time.time()), refresh=True)
                time.sleep(_EVERY)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _look(state: Path) -> "tuple[Status, list[Problem], dict[str, Any]]":
    """Read what there is to say: the peer's own words, what is wrong, and what can be seen from here."""
    from pushcen.errors import LedgerError
    from pushcen.runtime.health import Problem, problems
    from pushcen.runtime.locks import is_run
    from pushcen.runtime.rows import scores
    from pushcen.runtime.status import read_status

    now, used = time.time(), 0
    try:
        runs = is_run(state)  # before its last word is read, which may be that it ends
        said, measured, disk = read_status(state), scores(state), shutil.disk_usage(state)
        if said.time and not said.ended and not runs:
            said = replace(said, ended="killed")
        for path in state.iterdir():
            with contextlib.suppress(FileNotFoundError):  # a running peer removes what it has replaced
                used += path.stat().st_size
    except OSError as error:
        raise LedgerError(f"{state}: {error.strerror}; whoever asks must be able to read the state folder") from error
    found = problems(said, now)
    if disk.free < 3 * used:
        text = f"its disk has {disk.free / 1e6:.0f} MB left, and its state folder has {used / 1e6:.0f} MB"
        found.append(Problem("room", "warning", text, "make room: every commit writes the weights anew"))
    more = {"now": now, "folder_bytes": used, "disk_free_bytes": disk.free, **measured}
    return said, found, more


def _plain(said: "Status", found: "list[Problem]", more: dict[str, Any]) -> dict[str, Any]:
    from pushcen.runtime.health import is_running, level_of

    state = {"state": level_of(found), "running": is_running(said, more["now"])}
    return {**state, "problems": [one._asdict() for one in found], **more, **asdict(said)}


def _screen(said: "Status", found: "list[Problem]", more: dict[str, Any], now: float) -> "Group":
    from rich import box
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    from pushcen.runtime.health import is_running, level_of, span

    def ago(then: float) -> str:
        return f"{span(now - then)} ago" if then else "never"

    level, running = level_of(found), is_running(said, now)
    life = f"runs for {span(now - said.started)}, {said.phase}" if running else said.ended[:40] or "not running"
    reached = f"reached through {said.address[1:]}" if said.address[:1] == "@" else f"listens at {said.address or '?'}"
    head = Table.grid(padding=(0, 2))
    days = f"{(said.certificate_end - now) // 86400:.0f} days left" if said.certificate_end else "none"
    doubt = sum(one.in_doubt for one in said.neighbours)
    rows = {
        "peer": f"{said.peer}, boot {said.boot}, network {said.network or '?'}, pushcen {said.version or '?'}",
        "state": f"{life}; {reached}",
        "model": f"{said.method or '?'}, {said.events} events, the last {ago(said.trained)} in {span(said.seconds)}",
        more["metric"]: f"{more['score_shown']} now, {more['best_shown']} best",
        "mass": f"{said.held:.6f} held, {said.waiting:.6f} in {said.models} models that wait; {doubt} links in doubt",
        "merged": f"{ago(said.merged)}; last push of others {ago(said.received)}",
        "bytes": f"{said.bytes_in / 1e6:.2f} MB in, {said.bytes_out / 1e6:.2f} MB out, since it was started",
        "certificate": days,
        "disk": f"{more['folder_bytes'] / 1e6:.1f} MB used here, {more['disk_free_bytes'] / 1e9:.1f} GB free",
    }
    for name, text in rows.items():
        head.add_row(Text(name, style="dim"), Text(text))
    table = Table("neighbour", "address", "", "it pushed", "it took", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for one in said.neighbours:
        mark = one.state + (", in doubt" if one.in_doubt else "")
        table.add_row(*map(Text, (one.name, one.address, mark, ago(one.pushed), ago(one.took))))
    parts: list[Any] = [head, table if said.neighbours else Text("no neighbours")]
    parts += [Text(f"{one.name} differs: {one.differs}", style="dim") for one in said.neighbours if one.differs]
    for problem in found:
        parts.append(f"[{_COLOURS[problem.level]}]{problem.level}[/]: {escape(problem.text)}")
        parts.append(f"    {escape(problem.hint)}")
    parts.append(f"[{_COLOURS[level]}]{level}[/]" if not found else "")
    return Group(*parts)
