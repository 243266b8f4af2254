"""A small internet in user space: each site is a network namespace, and all packets between sites pass through here.

A site has one TUN device, whose other end this process holds. So nothing is left behind, whatever becomes of a test: a
namespace and its device live as long as somebody has them open. Packets are dropped, delayed, held up by a partition,
or changed by a gateway (NAT and firewall) on the way.
"""

import collections
import contextlib
import ctypes
import fcntl
import functools
import heapq
import ipaddress
import os
import random
import select
import shutil
import struct
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEW_NETWORK = 0x40000000
_SET_INTERFACE, _TUN, _NO_HEADER = 0x400454CA, 0x0001, 0x1000
_MTU = 9000  # fewer packets: each passes through Python
_TCP, _SYN = 6, 0x02


@functools.cache
def missing():
    """Say what it takes, if namespaces cannot be made here."""
    for program in ("ip", "nsenter", "unshare", "mount"):
        if shutil.which(program) is None:
            return f"there is no command {program} here"
    try:
        with Router() as router:
            router.site("probe", "10.99.0.1")
    except (OSError, subprocess.CalledProcessError) as error:
        return f"network namespaces cannot be made here: {error}"
    return ""


class Gateway:
    """What is between a site and the others: it lets out what it is asked for, and in only what answers.

    `allow` says to which (address, port) a connection may go out. A flow on which nothing has passed for `idle` seconds
    is forgotten: what comes later, either way, is dropped without a word, as by routers in cellars.
    """

    def __init__(self, public, allow=lambda _address, _port: True, idle=3600.0):
        self.public, self.allow, self.idle = public, allow, idle
        self._ports = iter(range(20_000, 60_000))
        self._out, self._in, self._used = {}, {}, {}

    def leave(self, packet, now):
        """Give a packet this gateway's address, as the outside knows it; return why it is dropped, if it is."""
        at, source, target = _ends(packet)
        flow = (source, target)
        port = self._out.get(flow)
        if port is None or now - self._used[port] > self.idle:
            if packet[at + 13] & _SYN == 0:
                return "forgotten"
            if not self.allow(str(ipaddress.IPv4Address(target[0])), target[1]):
                return "firewall"
            self._forget(port)
            port = self._out[flow] = next(self._ports)
            self._in[port, target] = source
        self._used[port] = now
        _readdress(packet, at, 12, ipaddress.IPv4Address(self.public).packed, port)
        return ""

    def enter(self, packet, now):
        """Give a packet the address of whom it is for; return why it is dropped, if it is."""
        at, source, target = _ends(packet)
        inner = self._in.get((target[1], source))
        if inner is None or now - self._used[target[1]] > self.idle:
            return "unasked"
        self._used[target[1]] = now
        _readdress(packet, at, 16, *inner)
        return ""

    def alive(self):
        """Count flows that are remembered."""
        return sum(time.monotonic() - used <= self.idle for used in self._used.values())

    def _forget(self, port):
        self._in = {key: inner for key, inner in self._in.items() if key[0] != port}


class Site:
    """A network namespace with one address; a process that is started in it sees nothing else."""

    def __init__(self, router, name, address, gateway):
        self.name, self.address, self.gateway, self._router = name, address, gateway, router
        with ThreadPoolExecutor(1) as elsewhere:  # a thread may live in another namespace than its process
            self.space, self.device = elsewhere.submit(self._make).result()

    def _make(self):
        if _LIBC.unshare(_NEW_NETWORK):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        with contextlib.ExitStack() as undo:
            space = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
            undo.callback(os.close, space)
            device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            undo.callback(os.close, device)
            fcntl.ioctl(device, _SET_INTERFACE, struct.pack("16sH22x", b"tun0", _TUN | _NO_HEADER))
            for words in ("link set lo up", f"link set tun0 mtu {_MTU} up", *self._addressed()):
                _ip(words)
            undo.pop_all()
        return space, device

    def _addressed(self):
        return (f"address add {self.address}/32 dev tun0", "route add default dev tun0")

    def inside(self, command, hosts=None):
        """Return the command that runs another here, with a hosts file of its own."""
        enter = ["nsenter", f"--net=/proc/{os.getpid()}/fd/{self.space}"]
        if hosts is None:
            return [*enter, *map(str, command)]
        bound = 'mount --bind "$0" /etc/hosts && exec "$@"'
        return [*enter, "unshare", "--mount", "sh", "-c", bound, str(hosts), *map(str, command)]

    def move(self, address, gateway=None):
        """Wake up in another network: with another address, behind another gateway."""
        self.address, self.gateway = address, gateway
        subprocess.run(self.inside(["ip", "address", "flush", "dev", "tun0"]), check=True)
        for words in self._addressed():
            subprocess.run(self.inside(["ip", *words.split()]), check=True)


class Router(threading.Thread):
    """Carries packets between sites until it is closed.

    `loss` is the chance of each packet, `delay` its time on the way in seconds; `cut` names the sites that are cut off
    from all others; `dropped` counts packets by reason.
    """

    def __init__(self, seed=0):
        super().__init__(daemon=True)
        self.loss, self.delay, self.cut = 0.0, 0.0, frozenset()
        self.dropped, self.carried = collections.Counter(), collections.Counter()
        self._sites, self._late, self._count = {}, [], 0
        self._rng, self._open, self._poll = random.Random(seed), True, select.epoll()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._open = False
        self.join()
        for site in self._sites.values():
            os.close(site.device)
            os.close(site.space)
        self._poll.close()

    def site(self, name, address, gateway=None):
        """Make a site; behind a gateway nobody can dial it."""
        site = self._sites[name] = Site(self, name, address, gateway)
        self._poll.register(site.device, select.EPOLLIN)
        return site

    def run(self):
        while self._open:
            wait = max(0.0, self._late[0][0] - time.monotonic()) if self._late else 0.05
            ready = {device for device, _ in self._poll.poll(min(wait, 0.05))}
            for site in list(self._sites.values()):
                if site.device in ready:
                    self._read(site)
            while self._late and self._late[0][0] <= time.monotonic():
                _, _, device, packet = heapq.heappop(self._late)
                self._write(device, packet)

    def _read(self, site):
        for _ in range(64):
            try:
                packet = bytearray(os.read(site.device, _MTU))
            except BlockingIOError:
                return
            if packet[0] >> 4 == 4 and packet[9] == _TCP:
                now = time.monotonic()
                why, target = self._route(site, packet, now)
                if why:
                    self.dropped[why] += 1
                    continue
                self.carried[site.name, target.name] += 1
                if self.delay:
                    self._count += 1
                    heapq.heappush(self._late, (now + self.delay, self._count, target.device, bytes(packet)))
                else:
                    self._write(target.device, packet)

    def _route(self, site, packet, now):
        """Return why a packet is dropped, or the site that it goes to, as that site is to see it."""
        if _text(packet[12:16]) != site.address:
            return "stranger", None  # of a connection that was made in another network
        if site.gateway and (why := site.gateway.leave(packet, now)):
            return why, None
        to = _text(packet[16:20])
        target = next((one for one in self._sites.values() if to == (one.gateway or _AT(one.address)).public), None)
        if target is None:
            return "nowhere", None
        if (site.name in self.cut) != (target.name in self.cut):
            return "cut", None
        if self._rng.random() < self.loss:
            return "loss", None
        if target.gateway and (why := target.gateway.enter(packet, now)):
            return why, None
        return "", target

    def _write(self, device, packet):
        with contextlib.suppress(OSError):  # its queue is full: the packet is lost, as it would be
            os.write(device, packet)


_AT = collections.namedtuple("_AT", "public")


def _ip(words):
    subprocess.run(["ip", *words.split()], check=True, capture_output=True)


def _text(address):
    return ".".join(map(str, address))


def _ends(packet):
    """Return where a packet's TCP header begins, and its two ends."""
    at = (packet[0] & 15) * 4
    return at, *zip(struct.unpack_from("!2I", packet, 12), struct.unpack_from("!2H", packet, at), strict=True)


def _readdress(packet, at, where, address, port):
    """Change one end of a packet, the source (12) or the target (16), with both checksums."""
    address = address if isinstance(address, bytes) else address.to_bytes(4)
    here = at if where == 12 else at + 2
    old = bytes(packet[where : where + 4] + packet[here : here + 2])
    new = address + port.to_bytes(2)
    packet[where : where + 4], packet[here : here + 2] = new[:4], new[4:]
    _mend(packet, 10, old[:4], new[:4])
    _mend(packet, at + 16, old, new)


def _mend(packet, at, old, new):
    """Change a checksum by what has changed (RFC 1624)."""
    words = f"!{len(old) // 2}H"
    total = ~int.from_bytes(packet[at : at + 2]) & 0xFFFF
    total += sum(~word & 0xFFFF for word in struct.unpack(words, old)) + sum(struct.unpack(words, new))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    packet[at : at + 2] = (~total & 0xFFFF).to_bytes(2)
