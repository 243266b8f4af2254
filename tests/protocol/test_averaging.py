"""Many peers, in pseudo-time: what becomes of the average, and of mass. See scripts/draw_protocol.py for more."""

import pytest

from pushcen.bench.averaging import Links, paper, unbalanced
from pushcen.protocol import Buffer, ByMass, Rules, Whole, audit


@pytest.mark.parametrize("links", [Links(), Links(fails=0.3)])
def test_textbook_push_sum_finds_the_true_average(links):
    trace = unbalanced(Rules(Buffer(4, "keep", newest_only=False), ByMass(), Whole(0)), 1, links).run(100, 100)
    assert trace.error[-1] < 1e-9
    assert trace.live == [1.0]


def test_keep_agrees_near_the_true_average_and_drop_farther_off():
    offsets = {"keep": [], "doubt": [], "drop": []}
    for seed in range(3):
        for case, buffer, links in (
            ("keep", Buffer(4), Links()),
            ("doubt", Buffer(4), Links(doubt=0.3)),
            ("drop", Buffer(4, "drop"), Links()),
        ):
            trace = unbalanced(Rules(buffer, ByMass(), Whole(0)), seed, links, peers=100).run(100, 100)
            offsets[case].append(abs(trace.offset))
            if case != "drop":
                assert trace.spread < 1e-9, "consensus"
    assert max(sum(offsets["keep"]), sum(offsets["doubt"])) < sum(offsets["drop"]) / 3


def test_nothing_is_stranded_without_loss():
    assert max(paper("keep", 1).run(20, 5).stranded) == 0


def test_little_is_stranded_when_pushes_end_in_doubt():
    assert 0 < max(paper("keep", 1, Links(doubt=0.3)).run(30, 5).stranded) < 0.1


def test_fire_and_forget_strands_most_of_the_mass_and_loses_none():
    world = paper("keep", 1, Links(silent=0.3))
    assert world.run(30, 5).stranded[-1] > 0.5
    report = audit([peer.save() for peer in world.peers.values()])
    assert (report.violations, report.balanced, report.destroyed) == ([], True, {})


def test_drop_leaves_next_to_nothing_in_the_papers_setting():
    world = paper("drop", 1)
    assert world.run(60, 60).live[-1] < 0.001
    report = audit([peer.save() for peer in world.peers.values()])
    assert report.violations == []
    assert report.balanced
    assert report.destroyed.keys() == {"replaced", "evicted"}
    assert sum(report.destroyed.values()) > 0.9 * report.founded
