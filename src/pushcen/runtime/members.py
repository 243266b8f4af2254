"""Whom a peer knows, who of them answers, and whom it keeps lines to and pushes to: bounded, and kept by gossip.

Pure bookkeeping: the time is passed in, and so is the random generator. Times are those of a monotonic clock.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from pushcen.errors import OptionError
from pushcen.protocol import Contact, NeighbourPolicy, PeerId, epoch_of, name_of
from pushcen.protocol.messages import LIMIT, check_id
from pushcen.references import ReferenceName
from pushcen.runtime.network import check_name
from pushcen.runtime.options import RuntimeOptions
from pushcen.runtime.security.trust import Fields
from pushcen.runtime.wire import Signed

FEW = 16
"""Others up to which a peer keeps a line to each; of more, to some, which are exchanged one after the other."""
_SPARE = 4  # lines that it keeps beside those that it needs
_REFUSED = 16  # references that a member would not take and that are remembered
_EXCHANGE = 0.1  # how likely a push exchanges one of the view for another
_SELDOM = 6  # how much longer nothing may be heard of somebody to whom no line is kept
_HOSTS = 8  # through whom a peer may be reached, at most
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")


@dataclass
class Member:
    """Another peer: where it listens, what it said last, and when it is to be tried again."""

    name: str
    address: str
    record: Signed | None = None  # its own word on where it listens
    version: tuple[int, int] = (0, 0)  # epoch and boot of that record
    serial: int = 0  # and which one it is of that boot
    contact: Contact | None = None  # as its last answer shows it
    answered: float = -1e9  # when it answered last
    tried: float = -1e9
    next_try: float = 0.0
    failures: int = 0
    refusal: str = ""  # why it will not have us
    varies: dict[str, str] = field(default_factory=dict)  # what it does in its own way, by its word
    holds: dict[ReferenceName, bytes] = field(default_factory=dict)  # references, with fingerprints, by its last word
    refuses: set[bytes] = field(default_factory=set)  # fingerprints of references that it would not take


class Members:
    """All that a peer knows of others. At most `settings.known` of them, of which a view is pushed to."""

    def __init__(self, me: str, settings: RuntimeOptions, rng: Random) -> None:
        self.me = me
        self.all: dict[str, Member] = {}
        self.gone: set[str] = set()  # identities that left or were forgotten
        self.lost: dict[str, str] = {}  # where those listened that were given up
        self._settings = settings
        self._rng = rng
        self.policy: NeighbourPolicy[str] | None = None  # which of the view are picked, if not any
        self._view: list[str] = []
        self._lines = settings.view + settings.hosts + _SPARE
        self._near: set[str] = set()  # of many, those whom a line is kept to
        self._exchanged = -1e9  # when one of them last made room for another

    def keep_lines(self, receivers: int) -> None:
        """Keep as many lines as it takes to push to so many at a time (0: to the whole view), if there are many others.

        >>> members = Members("me", RuntimeOptions(hosts=2), Random(0))
        >>> members.keep_lines(receivers=10)
        >>> for at in range(40):
        ...     _ = members.meet(f"p{at}", f"192.0.2.{at}:7000", 0.0)
        >>> sum(map(members.near, members.all))
        16
        """
        self._lines = min(receivers or self._settings.view, self._settings.view) + self._settings.hosts + _SPARE

    def near(self, name: str) -> bool:
        """Return whether a line is kept to a peer."""
        return len(self.all) <= FEW or name in self._near

    def neighbours(self) -> list[Member]:
        """List those whom a line is kept to, and whose last try was answered."""
        return [member for member in self.online() if self.near(member.name)]

    def online(self) -> list[Member]:
        """List those whose last try was answered."""
        return [member for member in self.all.values() if member.contact and not member.failures]

    def contact(self, name: str) -> Contact | None:
        """Return how a peer last showed itself."""
        return self.all[name].contact if name in self.all else None

    def draw(self, k: int) -> list[str]:
        """Return up to `k` names (0: all) of the view, which changes slowly; those that do not answer are not in it."""
        online = {member.name for member in self.neighbours()}
        view = [name for name in self._view if name in online]
        if view and self._rng.random() < _EXCHANGE:
            view.pop(self._rng.randrange(len(view)))
        others = sorted(online.difference(view))
        self._rng.shuffle(others)
        self._view = view = view + others[: self._settings.view - len(view)]
        if self.policy is not None:
            return self.policy.pick(self.me, view, k)
        return self._rng.sample(view, min(k or len(view), len(view)))

    def meet(self, name: str, address: str, now: float, owed: Callable[[str], bool] = lambda _: False) -> Member | None:
        """Note that a peer listens at an address; None if there is no room for one more."""
        member = self.all.get(name)
        if member is None:
            if len(self.all) >= self._settings.known and not self._make_room(owed):
                return None
            member = self.all[name] = Member(check_name(name), check_place(address), next_try=now)
            self.lost.pop(name, None)
            self._choose_near(now)
        elif member.address != address:
            member.address = check_place(address)
            member.next_try, member.failures = now, max(1, member.failures)
        return member

    def learn(self, record: Signed, author: str, fields: Fields, now: float, owed: Callable[[str], bool]) -> bool:
        """Take over a peer's own, signed word on where it listens, if it is news; return whether it was."""
        peer, boot = check_id(fields["peer"]), int(fields["boot"])
        if name_of(peer) != author or author == self.me or peer in self.gone:
            return False
        member, version, serial = self.all.get(author), (epoch_of(peer), boot), fields.get("serial", 0)
        if type(serial) is not int or not 0 <= serial <= LIMIT:
            raise ValueError(f"serial = {serial!r:.40}: must be a whole number from 0 to {LIMIT}")
        if member is not None and (version, serial) <= (member.version, member.serial if member.record else -1):
            return False
        member = self.meet(author, fields["address"], now, owed)
        if member is None:
            return False
        member.record, member.version, member.serial = record, version, serial
        return True

    def has(self, record: Signed) -> bool:
        """Return whether a record is held already, as most that gossip brings are."""
        return any(member.record == record for member in self.all.values())

    def heard(self, name: str, contact: Contact, now: float) -> None:
        """Note that a peer has answered."""
        member = self.all[name]
        if member.contact and _version(contact) < _version(member.contact):
            return
        member.contact, member.answered, member.failures, member.refusal = contact, now, 0, ""

    def says(self, name: str, holds: dict[ReferenceName, bytes]) -> None:
        """Note which references a peer says it holds."""
        if name in self.all:
            self.all[name].holds = holds

    def refuses(self, name: str, fingerprint: bytes) -> None:
        """Note that a peer would not take a reference; of many, the last few are remembered."""
        if member := self.all.get(name):
            if len(member.refuses) >= _REFUSED:
                member.refuses.clear()
            member.refuses.add(fingerprint)

    def silent(self, name: str, now: float, refusal: str = "") -> bool:
        """Note that a peer has not answered, or refuses us; return whether it was left out for good."""
        member = self.all.get(name)
        if member is None:
            return False
        settings = self._settings
        member.failures += 1
        member.refusal = refusal[:500]  # it is the other's text
        wait = min(settings.retry_first * 2 ** min(member.failures - 1, 30), settings.retry_last)
        member.next_try = now + wait * (0.5 + self._rng.random())
        self._near.discard(name)
        if member.failures >= settings.give_up:
            self.lost[name] = self.all.pop(name).address
            if len(self.lost) > settings.known:
                del self.lost[next(iter(self.lost))]
            return True
        return False

    def due(self, now: float, awaits: Callable[[str], bool] = lambda _: False) -> list[str]:
        """Return whom to say hello to: silent ones whose time has come, and those not heard from for long.

        Of those whom no line is kept to, only who has something that it `awaits` word of.
        """
        quiet = self._settings.hello_every
        if now - self._exchanged >= quiet:
            self._exchange(now)
        self._choose_near(now)

        def is_due(member: Member) -> bool:
            if now < member.next_try or now - member.tried < min(quiet, 0.2):
                return False
            near = self.near(member.name)
            silent = member.failures or not member.contact
            wait = quiet if near else _SELDOM * quiet
            return bool(silent or now - member.answered > wait) and (near or awaits(member.name))

        return [member.name for member in self.all.values() if is_due(member)]

    def restart(self, now: float) -> None:
        """Forget how others showed themselves, and ask them all again: a new generation has begun."""
        for member in self.all.values():
            member.contact, member.failures, member.refusal, member.next_try = None, 0, "", now

    def close(self, peer: PeerId) -> None:
        """Leave out a peer that left or was forgotten; in a later epoch it may be met again."""
        self.gone.add(peer)
        self.lost.pop(name_of(peer), None)
        member = self.all.get(name_of(peer))
        known = max(member.version[0], epoch_of(member.contact.peer) if member.contact else 0) if member else 0
        if member and known <= epoch_of(peer):
            del self.all[member.name]

    def sample(self, count: int) -> list[Signed]:
        """Return some records to pass on, of those that answer."""
        records = [member.record for member in self.online() if member.record]
        return self._rng.sample(records, min(count, len(records)))

    def addresses(self) -> dict[str, str]:
        """Return names and addresses, to start from after a restart."""
        return {member.name: member.address for member in self.all.values()}

    def _exchange(self, now: float) -> None:
        """Keep a line to another one in place of one of those that there are, whoever it is: so all are met again."""
        others = self._others(now)
        self._exchanged = now
        if len(self.all) > FEW and others and len(self._near) >= self._lines:
            self._near.remove(self._rng.choice(sorted(self._near)))
            self._near.add(self._rng.choice(others))

    def _choose_near(self, now: float) -> None:
        """Choose whom lines are kept to, where some are missing: those first that were not found silent."""
        self._near.intersection_update(self.all)
        if len(self.all) <= FEW or len(self._near) >= self._lines:
            return
        others = self._others(now)
        self._rng.shuffle(others)
        others.sort(key=lambda name: self.all[name].failures > 0)
        self._near.update(others[: self._lines - len(self._near)])

    def _others(self, now: float) -> list[str]:
        """List those whom no line is kept to and who may be tried."""
        return sorted(name for name, one in self.all.items() if name not in self._near and now >= one.next_try)

    def _make_room(self, owed: Callable[[str], bool]) -> bool:
        silent = [member.name for member in self.all.values() if member.failures and not owed(member.name)]
        if silent:
            del self.all[self._rng.choice(silent)]
        return bool(silent)


def hosts_of(address: str) -> list[str]:
    """Return through whom a peer with this address is reached; nobody, if it can be dialled.

    >>> hosts_of("@ward-1,ward-3"), hosts_of("192.0.2.7:7000")
    (['ward-1', 'ward-3'], [])
    """
    return [name for name in address[1:].split(",") if name] if address.startswith("@") else []


def check_place(address: str) -> str:
    """Take `address` for where a peer is reached: HOST:PORT, or @ and the names of its hosts.

    >>> check_place("@ward-1,ward-3")
    '@ward-1,ward-3'
    """
    if not isinstance(address, str) or not address.startswith("@"):
        return check_address(address)
    hosts = hosts_of(address[:1024])
    if not 0 < len(hosts) <= _HOSTS or address != "@" + ",".join(map(check_name, hosts)):
        raise OptionError(f"address {address!r:.100}: must be HOST:PORT, or @ and the names of {_HOSTS} hosts at most")
    return address


def check_address(address: str) -> str:
    """Take `address` for HOST:PORT, if it is.

    >>> check_address("ward-3.example:7000")
    'ward-3.example:7000'
    >>> check_address("ward-3")
    Traceback (most recent call last):
    pushcen.errors.OptionError: address 'ward-3': must be HOST:PORT, such as 192.0.2.7:7000
    """
    match = _ADDRESS.fullmatch(address) if isinstance(address, str) and len(address) <= 255 else None
    if match is None or not 0 < int(match[2]) < 65536:
        raise OptionError(f"address {address!r:.100}: must be HOST:PORT, such as 192.0.2.7:7000")
    return address


def _version(contact: Contact) -> tuple[int, int]:
    return epoch_of(contact.peer), contact.boot
