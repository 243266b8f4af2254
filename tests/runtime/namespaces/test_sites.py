"""Peers behind NAT, firewalls and proxies, on links that lose, delay and part, in laptops that sleep and move."""

import signal
import time

import pytest

from .router import Gateway, missing
from .sites import Wards, only

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "-")


def test_two_that_may_dial_port_443_only_train_with_one_that_listens(tmp_path):
    with Wards(tmp_path, ["ann", "bob", "cat"]) as wards:
        wards.add("ann")
        wards.add("bob", allow=only(443))
        wards.add("cat", allow=only(443))
        for name in wards.names:
            wards.peer(name)
        wards.wait_for_news(*wards.every_pair())
        assert wards.router.carried["bob", "cat"] == 0
        wards.check()


@pytest.mark.slow
def test_those_who_may_reach_a_proxy_only_train_with_the_others(tmp_path):
    with Wards(tmp_path, ["ann", "bob", "cat"]) as wards:
        wards.add("ann")
        door = wards.add("proxy")
        wards.start("proxy", "-m", "tests.runtime.proxy", "0.0.0.0:3128")
        for name in ("bob", "cat"):
            wards.add(name, allow=only(3128, door.address))
        wards.peer("ann")
        for name in ("bob", "cat"):
            wards.peer(name, "--proxy", "proxy.example:3128")
        wards.wait_for_news(*wards.every_pair())
        assert wards.router.carried["bob", "ann"] == wards.router.carried["bob", "cat"] == 0
        wards.check()


@pytest.mark.slow
def test_idle_streams_outlive_the_memory_of_a_nat(tmp_path):
    """Nobody has anything to say for four times as long as the gateway remembers a flow, and it forgets not all."""
    idle, silent = 6.0, {"gossip_every": 600, "hello_every": 600, "keepalive": 2}
    with Wards(tmp_path, ["ann", "bob"], **silent) as wards:
        wards.add("ann")
        site = wards.add("bob", idle=idle)
        for name in wards.names:
            wards.peer(name, "--events", "3")
        wards.wait(lambda: all("training is done" in wards.log(name) for name in wards.names))
        time.sleep(4 * idle)
        assert site.gateway.alive() >= 1
        assert wards.log("bob").count("reached through") == 1, wards.logs()
        wards.check()


@pytest.mark.slow
def test_what_a_nat_has_forgotten_is_dialled_anew(tmp_path):
    """The gateway forgets more than once what was still in use, and the peer behind it is within reach again."""
    with Wards(tmp_path, ["ann", "bob"], keepalive=2, pause=1) as wards:
        wards.add("ann")
        site = wards.add("bob", hidden=True)
        for name in wards.names:
            wards.peer(name)
        wards.wait_for_news(*wards.every_pair())
        for _ in range(2):
            count = wards.log("bob").count("reached through")
            site.gateway.idle = 0.0
            wards.wait(lambda count=count: wards.log("bob").count("reached through") > count)
            site.gateway.idle = 3600.0
            wards.wait_for_news(*wards.every_pair())
        wards.check()


@pytest.mark.slow
def test_a_laptop_that_sleeps_and_wakes_in_another_network_goes_on_by_itself(tmp_path):
    with Wards(tmp_path, ["ann", "bob", "laptop"], keepalive=5) as wards:
        wards.add("ann")
        wards.add("bob")
        laptop = wards.add("laptop", hidden=True)
        for name in wards.names:
            wards.peer(name)
        wards.wait_for_news(*wards.every_pair())
        wards.signal("laptop", signal.SIGSTOP)
        wards.wait(lambda: '"event": "no answer", "peer": "ann", "neighbour": "laptop"' in wards.log("ann"))
        wards.wait_for_news(("ann", "bob"), ("bob", "ann"))  # nobody waits for it
        laptop.move("172.16.3.4", Gateway("10.9.1.1"))
        wards.signal("laptop", signal.SIGCONT)
        wards.wait_for_news(*wards.every_pair())
        wards.check()


@pytest.mark.slow
@pytest.mark.parametrize("side", [{"ann"}, {"cat"}, {"ann", "cat"}], ids=["the host", "the hidden", "a pair"])
def test_a_partition_heals(tmp_path, side):
    with Wards(tmp_path, ["ann", "bob", "cat"], keepalive=5) as wards:
        wards.add("ann")
        wards.add("bob")
        wards.add("cat", hidden=True)
        for name in wards.names:
            wards.peer(name)
        wards.wait_for_news(*wards.every_pair())
        wards.router.cut = side
        together = side if len(side) > 1 else set(wards.names) - side
        wards.wait_for_news(*wards.every_pair(*sorted(together)))
        apart = [name for name in wards.names if name not in together]
        wards.wait(lambda: any('"event": "no answer"' in wards.log(name) for name in apart))
        wards.router.cut = frozenset()
        wards.wait_for_news(*wards.every_pair())
        wards.check()


@pytest.mark.slow
def test_links_that_lose_and_delay_lose_no_mass(tmp_path):
    with Wards(tmp_path, ["ann", "bob", "cat", "dan"], hello_timeout=5) as wards:
        wards.router.loss, wards.router.delay = 0.05, 0.05
        for name in wards.names[:2]:
            wards.add(name)
        for name in wards.names[2:]:
            wards.add(name, allow=only(443))
        for name in wards.names:
            wards.peer(name)
        wards.wait_for_news(*wards.every_pair())
        wards.wait_for_news(*wards.every_pair())
        assert wards.router.dropped["loss"] > 100
        wards.check()
