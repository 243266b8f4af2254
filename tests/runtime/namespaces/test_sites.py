"""Peers behind NAT, firewalls and proxies, on links that lose, delay and part, in laptops that sleep and move."""

import signal

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
