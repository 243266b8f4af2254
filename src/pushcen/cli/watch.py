"""`pushcen watch`: runs and real peers in the browser; and how other commands show theirs."""

import contextlib
import os
import re
import shlex
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

if TYPE_CHECKING:
    from pushcen.config import Config
    from pushcen.runtime.local import LocalNetwork
    from pushcen.runtime.looking import WatchedPeer
    from pushcen.watch.asking import Recording

NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Only print the page's address.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The page's port on this machine; 0: any that is free.")]
WatchIt = Annotated[bool, typer.Option("--watch", help="Show it in the browser while it goes on (docs/watch.md).")]
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^/\\:\s]+):[0-9]{1,5}")


def watch(
    what: Annotated[
        list[str],
        typer.Argument(metavar="RUN|HOST:PORT", help="Folders of runs, or that hold some; addresses of real peers."),
    ],
    certs: Annotated[
        Path | None, typer.Option(help="For addresses: a folder of certificates of a member of the network.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="For addresses: keep what is seen in this new folder, to be watched again.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write one HTML file that plays without a server, and stop.")
    ] = None,
    no_browser: NoBrowser = False,
    port: Port = 0,
) -> None:
    """Show runs in the browser: the network, curves, the book of mass, who merged whom; live, and as a replay.

    Real peers are asked once a second how they are, as a member of their network. It only reads.
    """
    from pushcen.errors import OptionError
    from pushcen.runs import find_runs

    console = Console(highlight=False, stderr=True)
    addresses = [one for one in what if _ADDRESS.fullmatch(one) and not Path(one).exists()]
    folders = [Path(one) for one in what if one not in addresses]
    if addresses and certs is None:
        raise OptionError(f"{addresses[0]}: to ask a peer needs --certs FOLDER, the certificates of a member")
    if not addresses and (certs or folder):
        raise OptionError(f"--{'certs' if certs else 'folder'}: is for addresses of real peers, and none is given")
    if folders:
        find_runs(folders)  # what is not there, or is damaged, is refused here
    with contextlib.ExitStack() as stack:
        if addresses:
            assert certs is not None
            at = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pushcen-"))) / "network"
            peers = _peers(addresses, certs, at, console)
            folders.append(at)
        if export is not None:
            from pushcen.watch import Watch, write_page

            size, every = write_page(Watch(folders), export)
            thin = f"; one in {every} of the recorded events is in it" if every > 1 else ""
            console.print(f"{export}: {size / 1e6:.1f} MB{thin}", soft_wrap=True, markup=False)
            return
        if addresses:
            from pushcen.watch.asking import recording

            stack.enter_context(recording(peers, at))
        stack.enter_context(contextlib.suppress(KeyboardInterrupt))
        stack.enter_context(_shown(folders, port, no_browser, console))
        _wait()


def _peers(addresses: Sequence[str], certs: Path, at: Path, console: Console) -> "list[WatchedPeer]":
    """Ask peers for the first time; say who does not answer."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from pushcen.errors import OptionError
    from pushcen.runtime.looking import RemotePeer
    from pushcen.runtime.security.identity import Certified
    from pushcen.watch.asking import first_look

    if at.exists() and any(at.iterdir()):
        raise OptionError(f"--folder {at}: must be empty, or not exist")
    identity = Certified(certs)
    for address, why in first_look([RemotePeer(identity, address) for address in addresses], at).items():
        console.print(f"{address}: {why}", soft_wrap=True, markup=False)
    return [RemotePeer(identity, address) for address in addresses]


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
def recorded(network: "LocalNetwork", config: "Config", *, on: bool) -> "Iterator[Recording | None]":
    """Record a network on this machine within this context, if `on`, in its own folder."""
    if not on:
        yield None
        return
    from pushcen.folder import Folder
    from pushcen.runtime.looking import RemotePeer
    from pushcen.runtime.security.identity import Certified
    from pushcen.watch.asking import recording

    Folder(network.folder).write_config(config.plain())
    identity = Certified(network.folder / "authority" / network.names[0])
    peers = [RemotePeer(identity, address) for address in network.addresses.values()]
    with recording(peers, network.folder, network.names) as record:
        yield record


def page_of_peer(http: str, token: Path | None) -> Callable[[Callable[[int, int], bytes]], Any] | None:
    """Return what shows the peer of this process at an address, within a context; nothing without an address."""
    from pushcen.errors import OptionError

    if not http:
        if token is not None:
            raise OptionError(f"--http-token {token}: is for --http HOST:PORT, which is not given")
        return None
    from pushcen.runtime.looking import PeerHere
    from pushcen.watch.asking import recording
    from pushcen.watch.guard import is_loopback, read_token, split_address
    from pushcen.watch.server import serving

    host, port = split_address(http)
    word = read_token(token) if token is not None else ""
    if not word and not is_loopback(host):
        raise OptionError(f"--http {http}: whoever reaches it could read it; it needs --http-token FILE")

    @contextlib.contextmanager
    def shown(view: Callable[[int, int], bytes]) -> Iterator[None]:
        with (
            tempfile.TemporaryDirectory(prefix="pushcen-", ignore_cleanup_errors=True) as made,
            recording([PeerHere(view)], Path(made) / "peer"),
            serving([Path(made) / "peer"], port, browser=False, host=host, token=word, given=f"--http {http}"),
        ):
            yield

    return shown


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
