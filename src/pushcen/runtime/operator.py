"""What the authority's keeper may do to a running network: give it a signed record, through any one of its peers."""

import tempfile
from pathlib import Path
from typing import Any

import grpc

from pushcen.errors import NetworkError
from pushcen.files import write_whole
from pushcen.runtime.members import check_address
from pushcen.runtime.network import ANY
from pushcen.runtime.security.authority import PUBLIC, Authority
from pushcen.runtime.security.certificates import key_bytes, make_certificate, new_key, pem, read
from pushcen.runtime.security.identity import Certified
from pushcen.runtime.security.records import digest
from pushcen.runtime.wire import SERVICE, News, Signed

NAME = "operator"
_DAYS = 10 / 60 / 24


async def deliver(authority: Authority, record: Signed, address: str, timeout: float = 10.0) -> None:
    """Hand a record to the peer at an address, with a certificate that is made for this and holds ten minutes."""
    check_address(address)
    with tempfile.TemporaryDirectory() as folder:
        identity = _operator(authority, Path(folder))
    async with identity.channel(address, ANY, []) as channel:
        gossip: Any = channel.unary_unary(f"/{SERVICE}/Gossip")
        try:
            news = News.FromString(await gossip(News(records=[record]).SerializeToString(), timeout=timeout))
        except grpc.aio.AioRpcError as error:
            raise NetworkError(f"{address}: {error.code().name}: {error.details():.300}") from error
    if digest(record) not in news.have:
        raise NetworkError(f"{address}: did not take the record; is it a peer of this network, and has it none newer?")


def _operator(authority: Authority, folder: Path) -> Certified:
    key = new_key()
    network = authority.network.fingerprint
    certificate = make_certificate(key.public_key(), authority.root, authority.key, network, NAME, _DAYS)
    write_whole(folder / "peer.pem", pem(certificate))
    write_whole(folder / "peer.key", key_bytes(key), 0o600)
    for file in PUBLIC:
        write_whole(folder / file, read(authority.folder / file))
    return Certified(folder)
