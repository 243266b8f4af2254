"""`pushcen watch`: runs in the browser, while they go on and afterwards; and how other commands show theirs."""

import contextlib
import shlex
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Only print the page's address.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The page's port on this machine; 0: any that is free.")]
WatchIt = Annotated[bool, typer.Option("--watch", help="Show it in the browser while it goes on (docs/watch.md).")]


def watch(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs, or folders that hold some.")],
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write one HTML file that plays without a server, and stop.")
    ] = None,
    no_browser: NoBrowser = False,
    port: Port = 0,
) -> None:
    """Show runs in the browser: the network, curves, the book of mass, who merged whom; live, and as a replay."""
    from pushcen.runs import find_runs

    console = Console(highlight=False, stderr=True)
    find_runs(folders)  # what is not there, or is damaged, is refused here
    if export is not None:
        from pushcen.watch import Watch, write_page

        size, every = write_page(Watch(folders), export)
        thin = f"; one in {every} of the recorded events is in it" if every > 1 else ""
        console.print(f"{export}: {size / 1e6:.1f} MB{thin}", soft_wrap=True, markup=False)
        return
    with contextlib.suppress(KeyboardInterrupt), _shown(folders, port, no_browser, console):
        _wait()


@contextlib.contextmanager
def watched(folders: Sequence[Path], *, on: bool, browser: bool) -> Iterator[None]:
    """Show runs within this context, if `on`; at its end the page stays until Ctrl-C."""
    if not on:
        yield
        return
    console = Console(highlight=False, stderr=True)
    with _shown(folders, 0, not browser, console):
        yield
        again = shlex.join(["pushcen", "watch", *map(str, folders)])
        with contextlib.suppress(KeyboardInterrupt):
            console.print(f"the page stays until Ctrl-C; later: {again}", soft_wrap=True, markup=False)
            _wait()


@contextlib.contextmanager
def _shown(folders: Sequence[Path], port: int, no_browser: bool, console: Console) -> Iterator[None]:
    from pushcen.watch.server import serving

    with serving(folders, port, browser=not no_browser) as server:
        console.print(f"the page: {server.address}", soft_wrap=True)
        yield


def _wait() -> None:
    """Wait for Ctrl-C."""
    while True:
        time.sleep(3600)
