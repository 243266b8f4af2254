"""In which epoch a peer begins or goes on, and whether it founds there: who lost its state must not do so again."""

import asyncio
import time
from collections.abc import Iterable

from pushcen.errors import NetworkError, ProtocolError
from pushcen.protocol import Peer, epoch_of, name_of
from pushcen.protocol.messages import check_id, peer_id
from pushcen.runtime.channels import Channels
from pushcen.runtime.fingerprint import difference
from pushcen.runtime.network import SHIFT, generation_of
from pushcen.runtime.node import PeerNode
from pushcen.runtime.wire import Hello

_AHEAD = 20 * 365 * 24 * 3600 * 1000  # milliseconds that a clock may have been ahead, if only others say so


def next_peer(node: PeerNode, above: int = 0) -> Peer:
    """Make the peer that this one goes on as: in the newest generation, in a later epoch (than `above`), with no mass.

    Who is listed as a founder of a generation that it has not been in, neither by its ledger nor by its own signature,
    founds it: it holds one unit there.
    """
    generation, me, own = node.records.newest, node.peer.me, node.claims.own.epoch
    listed = node.identity.name in generation.founders
    if listed and epoch_of(me) < generation.first and own < generation.first:
        return Peer.found(node.identity.name, node.peer.rules, generation.first)
    epoch = generation.later(time.time_ns() // 1_000_000, epoch_of(me) + 1, own + 1, above + 1)
    if not epoch_of(me):
        return Peer.join(node.identity.name, node.peer.rules, epoch)
    if generation_of(me) == generation.number:
        return node.peer.renewed(epoch)
    return Peer(peer_id(node.identity.name, epoch), 0, node.peer.rules)


async def ask_first(node: PeerNode, neighbours: Channels, join: Iterable[str]) -> int:
    """Ask those that a peer with an empty state folder joins for its own word; return the epoch they know it in.

    It may have been here before, with a clock that was ahead: in an earlier epoch nobody would listen to it. That is
    believed unsigned, within bounds, for all it does is to make the next epoch a later one. A founder waits until one
    has answered. Who is to join nobody is alone, and need not ask.
    """
    answers, known, asked = 0, 0, [address for address in join if address != node.address]
    begun = node.now
    while asked and not node.stopping.is_set():
        founds = node.identity.name in node.records.newest.founders
        for address, hello in zip(list(asked), await _greet(node, neighbours, asked), strict=True):
            if hello is None:
                continue
            answers += 1
            asked.remove(address)
            known = max(known, _said(node, hello))
            if founds and hello.refusal == "run":
                text = difference(node.about, hello.about)
                raise NetworkError(f"{hello.peer} at {address} runs something else: {text}")
        if (answers or not founds) and node.now - begun > node.settings.hello_timeout:
            break
        if asked:
            await asyncio.sleep(0.2)
    return known


def _said(node: PeerNode, hello: Hello) -> int:
    """Read in which epoch somebody knows this peer; 0 if that cannot be."""
    try:
        known = check_id(hello.known)
    except ProtocolError:
        return 0
    absurd = time.time_ns() // 1_000_000 + _AHEAD
    plausible = generation_of(known) == node.records.newest.number and epoch_of(known) % (1 << SHIFT) < absurd
    return epoch_of(known) if name_of(known) == node.identity.name and plausible else 0


async def ask_again(node: PeerNode, neighbours: Channels, join: Iterable[str]) -> None:
    """Ask everybody for a peer's own word before it founds a new generation; wait no longer than for a hello."""
    known = {node.address, *node.members.addresses().values()}
    addresses = sorted({*join, *node.members.lost.values()} - known)
    asked = asyncio.gather(*map(neighbours.ask, node.members.all), _greet(node, neighbours, addresses))
    await asyncio.wait([asked], timeout=2 * node.settings.hello_timeout)


async def _greet(node: PeerNode, neighbours: Channels, addresses: Iterable[str]) -> list[Hello | None]:
    """Say hello to whoever listens at these addresses, and take in what they say of this peer's past."""
    answers = await asyncio.gather(*map(neighbours.greet, list(addresses)))
    for hello in answers:
        if hello is not None:
            node.hear_past(hello.peer, hello)
    return answers
