"""Where a peer is reached: the address that it tells others, or a local socket that its hosts' tunnels lead to."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pushcen.errors import OptionError
from pushcen.runtime.members import check_address

_EVERYWHERE = ("0.0.0.0", "[::]")


def reachable(listen: str, advertise: str, port: int) -> str:
    """Return where others reach a peer that listens there; empty if it listens nowhere.

    >>> reachable("192.0.2.7:0", "", 7000), reachable("", "", 0)
    ('192.0.2.7:7000', '')
    """
    if not listen and advertise:
        raise OptionError(
            f"advertise = {advertise}: a peer that does not listen is reached through others; say --listen"
        )
    if not listen:
        return ""
    host = listen.rpartition(":")[0]
    if advertise:
        return check_address(advertise)
    if host in _EVERYWHERE:
        raise OptionError(f"listen = {listen}: say with --advertise HOST:PORT where others reach this peer")
    return f"{host}:{port}"


@contextlib.contextmanager
def local_socket() -> Iterator[Path]:
    """Make room for a local socket that nobody else can reach."""
    with tempfile.TemporaryDirectory(prefix="pushcen-", ignore_cleanup_errors=True) as folder:
        yield Path(folder) / "service"
