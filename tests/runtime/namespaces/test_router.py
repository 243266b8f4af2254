"""The router does to packets what it says."""

import subprocess
import sys

import pytest

from .router import Gateway, Router, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "-")

SERVE = """
import socket, sys, threading
def echo(one):
    while data := one.recv(1 << 16):
        one.sendall(data)
listener = socket.create_server(("0.0.0.0", int(sys.argv[1])))
print("listens", flush=True)
while True:
    threading.Thread(target=echo, args=[listener.accept()[0]], daemon=True).start()
"""
CALL = """
import hashlib, socket, sys
one = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=float(sys.argv[3]))
for line in sys.stdin:
    data = line.encode() * int(sys.argv[4])
    one.sendall(data)
    back = b""
    while len(back) < len(data):
        back += one.recv(1 << 16)
    print(back == data, flush=True)
"""


@pytest.fixture
def land():
    """A router, and what starts processes at sites, which end with the test."""
    started = []

    def start(site, program, *words):
        command = site.inside([sys.executable, "-c", program, *words])
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        started.append(subprocess.Popen(command, text=True, **pipes))
        return started[-1]

    with Router() as router:
        yield router, start
        for process in started:
            process.kill()
            process.communicate()


def serve(start, site, port=443):
    assert start(site, SERVE, port).stdout.readline() == "listens\n"


def call(start, site, address, port=443, limit=60, times=1):
    return start(site, CALL, address, port, limit, times)


def says(process, text="hello"):
    """Say something; return whether the same came back, or nothing."""
    process.stdin.write(text + "\n")
    process.stdin.flush()
    return process.stdout.readline() == "True\n"


def test_bytes_cross_as_they_are_through_nat_loss_and_delay(land):
    router, start = land
    server = router.site("server", "10.9.0.1")
    hidden = router.site("hidden", "192.168.1.5", Gateway("10.9.0.2"))
    serve(start, server)
    router.loss, router.delay = 0.01, 0.005
    assert says(call(start, hidden, server.address, times=20_000), "0123456789" * 5)
    assert router.dropped["loss"] > 0


def test_a_gateway_lets_out_what_it_may_and_nobody_in(land):
    router, start = land
    server = router.site("server", "10.9.0.1")
    hidden = router.site("hidden", "192.168.1.5", Gateway("10.9.0.2", lambda _, port: port == 443))
    for site, port in ((server, 443), (server, 7000), (hidden, 443)):
        serve(start, site, port)
    assert says(call(start, hidden, server.address))
    assert call(start, hidden, server.address, 7000, limit=0.5).wait(60) != 0
    assert call(start, server, "10.9.0.2", limit=0.5).wait(60) != 0
    assert call(start, server, hidden.address, limit=0.5).wait(60) != 0
    assert {"firewall", "unasked", "nowhere"} <= set(router.dropped)


def test_a_gateway_forgets_flows_that_are_idle(land):
    router, start = land
    server = router.site("server", "10.9.0.1")
    hidden = router.site("hidden", "192.168.1.5", Gateway("10.9.0.2"))
    serve(start, server)
    one = call(start, hidden, server.address, limit=3)
    assert says(one)
    hidden.gateway.idle = 0.0
    assert not says(one)
    assert router.dropped["forgotten"] > 0
    hidden.gateway.idle = 60.0
    assert says(call(start, hidden, server.address))  # a new connection is a new flow


def test_a_partition_heals_and_a_site_that_moved_dials_from_elsewhere(land):
    router, start = land
    server, other = router.site("server", "10.9.0.1"), router.site("other", "10.9.0.2")
    serve(start, server)
    one = call(start, other, server.address)
    assert says(one)
    router.cut = {"other"}
    assert call(start, other, server.address, limit=0.5).wait(60) != 0
    router.cut = frozenset()
    assert says(one)
    other.move("192.168.7.7", Gateway("10.9.0.3"))
    assert says(call(start, other, server.address))
