"""Pushes through a host go through it, and cost next to no bytes more."""

import asyncio

from pushcen.bench.hosted import hosted
from pushcen.models import LeNet


def test_every_push_goes_through_the_host_with_hardly_a_byte_more():
    found = asyncio.run(hosted(lambda: LeNet(10), 4, 2))
    assert 1.0 < found["bytes_vs_payload"] < 1.05  # a sender that is its own host would leave this one without
    assert 0 < found["p50_ms_to_mailbox"] <= found["p99_ms_to_mailbox"]
    assert found["mb_per_second"] > 0
