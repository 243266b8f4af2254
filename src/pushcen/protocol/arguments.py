"""Checks of what a driver or the network hands to a peer, before anything changes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pushcen.errors import ProtocolError
from pushcen.protocol.messages import LIMIT, Contact, Envelope, PeerId, check_id
from pushcen.protocol.saved import PARTS, number

if TYPE_CHECKING:
    from pushcen.protocol.peer import Peer

_LISTS = (list, tuple)


def check_receivers(receivers: Sequence[Contact], parts: Sequence[int], peer: "Peer") -> None:
    """Refuse receivers that are no contacts, are listed twice or are `peer` itself, and parts that do not fit them."""
    known, me, mass, peers = peer.sent, peer.me, peer.rules.weights.moves_mass, set()
    for given in (receivers, parts):
        if not isinstance(given, _LISTS):
            raise ProtocolError(f"receivers or parts {given!r:.80}: must be a list")
    for contact in receivers:
        who, boot = contact if contact.__class__ is Contact else ("", None)
        if boot.__class__ is not int or boot < 1:
            raise ProtocolError(f"receiver {contact!r:.80}: must be a Contact, with a boot of 1 or more")
        if who.__class__ is not str or who not in known:
            check_id(who)
        peers.add(who)
    if me in peers:
        raise ProtocolError(f"receivers {sorted(peers)}: {me} cannot push to itself")
    if parts:
        if mass or len(parts) != len(receivers):
            raise ProtocolError(f"parts = {parts!r}: one for each receiver, and none where mass moves")
        for part in parts:
            number(part, "parts", 0, PARTS)
        once = len(set(zip(receivers, parts, strict=True))) == len(receivers)
    else:
        once = len(peers) == len(receivers)
    if not once:
        raise ProtocolError(f"receivers {[contact.peer for contact in receivers]}: each may be listed once")


def malformed(envelope: Envelope, me: PeerId) -> ProtocolError:
    """Say what is wrong with an envelope that came to `me`."""
    what = f"envelope {envelope.sequence!r} from {envelope.sender} to {envelope.receiver}"
    if envelope.receiver != me:
        return ProtocolError(f"{what}: not for {me}")
    if envelope.sender == me:
        return ProtocolError(f"{what}: a peer cannot push to itself")
    return ProtocolError(
        f"{what}, part {envelope.part!r}, total {envelope.total!r}: must be whole numbers, 0 or more,"
        f" the sequence from 1 to {LIMIT}; only whole models carry mass"
    )
