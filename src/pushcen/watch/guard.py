"""Who may read a page: on this machine whoever calls it by a name of this machine, elsewhere who has the token."""

import base64
import ipaddress
import secrets
import socket
from pathlib import Path
from typing import Any

from pushcen.errors import OptionError

HERE = "127.0.0.1"
LEAST = 16
"""Letters of a token."""
_LARGEST = 4096


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT.

    >>> split_address("127.0.0.1:8080"), split_address("[::1]:80")
    (('127.0.0.1', 8080), ('::1', 80))
    >>> split_address("8080")
    Traceback (most recent call last):
    pushcen.errors.OptionError: --http 8080: must be HOST:PORT, as 127.0.0.1:8080
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise OptionError(f"--http {address}: must be HOST:PORT, as 127.0.0.1:8080")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a host.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("ward-3")
    (True, True, False, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_token(file: Path) -> str:
    """Return the token in a file."""
    try:
        with file.open("rb") as opened:
            token = opened.read(_LARGEST).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"--http-token {file}: cannot be read: {error}") from None
    if len(token) < LEAST or not token.isprintable() or " " in token:
        raise OptionError(
            f"--http-token {file}: must have {LEAST} letters or more, in one word; `openssl rand -hex 16` makes one"
        )
    return token


class Guard:
    """ASGI middleware that lets nobody through who calls by a strange name, or has not the token if there is one.

    A page of somebody else's that makes a name of its own point here (DNS rebinding) calls by that name. An address in
    numbers is no such name.
    """

    def __init__(self, app: Any, host: str = HERE, token: str = "") -> None:
        self._app, self._token = app, token
        self._hosts = {"localhost", host.lower()}
        if not is_loopback(host):
            self._hosts |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a call, or refuse it."""
        if scope["type"] != "http":
            return
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if not self._is_known(headers.get(b"host", "")):
            await _refuse(send, 400, b"this page is not called by that name")
        elif self._token and not self._may(headers.get(b"authorization", "")):
            ask = (b"www-authenticate", b'Basic realm="pushcen: the password is the token", charset="UTF-8"')
            await _refuse(send, 401, b"the token is needed: as the password, with any name", ask)
        else:
            await self._app(scope, receive, send)

    def _is_known(self, named: str) -> bool:
        host = named.rpartition(":")[0] if named.rpartition(":")[2].isdecimal() and ":" in named else named
        host = host.strip("[]").lower()
        if host in self._hosts:
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return bool(self._token) or address.is_loopback

    def _may(self, said: str) -> bool:
        """Return whether a header has the token, as a password or as `Bearer`."""
        kind, _, word = said.partition(" ")
        if kind.lower() == "basic":
            try:
                word = base64.b64decode(word, validate=True).decode("utf-8").partition(":")[2]
            except ValueError:  # not base64, or not text
                return False
        elif kind.lower() != "bearer":
            return False
        return secrets.compare_digest(word.encode(), self._token.encode())


async def _refuse(send: Any, status: int, text: bytes, *headers: tuple[bytes, bytes]) -> None:
    plain = (b"content-type", b"text/plain; charset=utf-8")
    await send({"type": "http.response.start", "status": status, "headers": [plain, *headers]})
    await send({"type": "http.response.body", "body": text + b"\n"})
