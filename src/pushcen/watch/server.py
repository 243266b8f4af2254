"""The server of the page, which can only be read: on this machine alone, unless told otherwise (`guard`).

It sends what runs write, as they write it.
"""

import asyncio
import json
import socket
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pushcen.errors import OptionError, PushcenError
from pushcen.watch.export import PAGE, SCRIPTS, STYLE, served_page
from pushcen.watch.guard import HERE, Guard, is_loopback
from pushcen.watch.source import Watch

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import FileResponse, HTMLResponse, Response, StreamingResponse
    from starlette.routing import Route
except ImportError as error:
    raise PushcenError(
        f"{error}: to watch runs in a browser needs pip install 'pushcen[watch]'; --export writes a page without it"
    ) from None

READERS = 64
"""Calls that are answered at a time."""
POLL = 0.5  # seconds between two looks at the folders
ALIVE = 15  # seconds after which a quiet connection is told that it is alive
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def application(
    folders: Sequence[Path], stopping: Callable[[], bool] = lambda: False, host: str = HERE, token: str = ""
) -> Starlette:
    """Return the page of these runs as an ASGI application; it answers who calls it by its name, with the token.

    Streams end when `stopping` says so.
    """

    async def page(_: Request) -> Response:
        return HTMLResponse(served_page(), headers=_HEADERS)

    async def file(request: Request) -> Response:
        return FileResponse(PAGE / request.url.path.lstrip("/"), headers=_HEADERS)

    async def stream(_: Request) -> Response:
        return StreamingResponse(_messages(folders, stopping), media_type="text/event-stream", headers=_HEADERS)

    files = [Route(f"/{name}", file) for name in (*SCRIPTS, STYLE)]
    guard = Middleware(Guard, host=host, token=token)
    return Starlette(routes=[Route("/", page), Route("/stream", stream), *files], middleware=[guard])


async def _messages(folders: Sequence[Path], stopping: Callable[[], bool]) -> AsyncIterator[str]:
    """Yield everything so far, and then what is new, as server-sent events."""
    watch, quiet = Watch(folders), 0.0
    while not stopping():
        for update in await asyncio.to_thread(watch.more):
            quiet = 0.0
            yield f"data: {json.dumps([update], separators=(',', ':'), allow_nan=False)}\n\n"
        if quiet >= ALIVE:
            quiet = 0.0
            yield ": alive\n\n"
        quiet += POLL
        await asyncio.sleep(POLL)


class PageServer(uvicorn.Server):
    """Serves until it is told to stop; connections that wait for news do not keep it."""

    def __init__(self, folders: Sequence[Path], port: int, host: str = HERE, token: str = "", given: str = "") -> None:
        if not token and not is_loopback(host):
            raise OptionError(f"--http {host}:{port}: whoever reaches it could read it; it needs --http-token FILE")
        page = application(folders, lambda: self.should_exit, host, token)
        bounds: dict[str, Any] = {"timeout_graceful_shutdown": 3, "limit_concurrency": READERS}
        super().__init__(uvicorn.Config(page, log_level="critical", lifespan="off", **bounds))
        self.socket = _listening(host, port, given or f"--port {port}")
        self.address = f"http://{f'[{host}]' if ':' in host else host}:{self.socket.getsockname()[1]}/"

    def serve_here(self) -> None:
        """Serve in this thread, until Ctrl-C or `should_exit`."""
        self.run(sockets=[self.socket])


@contextmanager
def serving(
    folders: Sequence[Path],
    port: int = 0,
    *,
    browser: bool = True,
    host: str = HERE,
    token: str = "",
    given: str = "",
) -> Iterator[PageServer]:
    """Serve the page within this context, in a thread; open it in a browser unless told not to.

    `given` is what told the port, for whoever chose one that is taken.
    """
    server = PageServer(folders, port, host, token, given)
    thread = threading.Thread(target=server.serve_here, daemon=True)
    thread.start()
    try:
        if browser:
            open_browser(server.address)
        yield server
    finally:
        server.should_exit = True
        thread.join(timeout=5)


def open_browser(address: str, open_: Callable[[str], bool] = webbrowser.open) -> None:
    """Open an address, if there is a browser; never wait for it."""
    threading.Thread(target=open_, args=(address,), daemon=True).start()


def _listening(host: str, port: int, given: str) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(64)  # who comes early waits a moment
    except OSError as error:
        made.close()
        raise OptionError(f"{given}: {error.strerror}; choose another, or leave it out") from None
    return made
