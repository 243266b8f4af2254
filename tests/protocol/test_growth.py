"""State grows with the names that were ever met, not with their epochs; what is dropped stays refused, and counted."""

import json
from random import Random

import pytest

from pushcen.protocol import UNIT, Answer, Buffer, Contact, Envelope, Equal, Farewell, KeepLatest, Peer, Rules, audit

from .rules import EQUAL, LATEST, PARTS
from .test_rules import deliver_all, push
from .world import World


def leaves_and_comes_back(world, name):
    """In good order: everything is handed over and credited, then a later epoch joins."""
    others = [other for other in world.peers if other != name]
    world.leave(name)
    for other in others:
        world.hear_farewell(other, world.farewells[-1])
    world.hand_over(name, others)
    deliver_all(world)
    for other in others:
        push(world, other)
        world.gossip(name, other)
    world.retire(name, back=True)


def test_a_ledger_does_not_grow_with_the_epochs_of_who_leaves_and_comes_back():
    world = World()
    sizes = []
    for _ in range(30):
        for name in world.peers:
            push(world, name, *(other for other in world.peers if other != name))
            deliver_all(world)
        leaves_and_comes_back(world, "p2")
        world.check()
        report = world.audit()
        assert (report.balanced, report.violations, report.missing) == (True, [], {})
        sizes.append(len(json.dumps(world.peers["p0"].save())))
    assert max(sizes[10:]) < sizes[3] * 1.25
    assert len(world.peers["p0"].closed) <= 1


def test_a_late_copy_on_a_dropped_link_is_refused():
    world = World()
    [late] = push(world, "p2", "p0")
    deliver_all(world)
    push(world, "p0", "p2")
    leaves_and_comes_back(world, "p2")
    push(world, "p0", "p2")
    peer = world.peers["p0"]
    assert "p2/1" not in {*peer.sent, *peer.credited, *peer.closed}
    for _ in range(2):
        assert world.deliver(late).reason == "epoch"
        world.hear_farewell("p0", world.farewells[0])
        peer.hear(Answer("p2/1", 1, 5 * UNIT, 5 * UNIT))
        assert "p2/1" not in [env.receiver for env in push(world, "p0", Contact("p2/1", 1))]
        world.check()
        world.crash("p0")
        peer = world.peers["p0"]
    assert world.audit().violations == []


def test_a_link_that_may_still_change_is_not_dropped():
    world = World()
    push(world, "p0", "p2")
    world.renew("p2", forget=False)
    push(world, "p0", "p2")
    push(world, "p0")
    assert world.peers["p0"].sent["p2/1"] == UNIT // 2, "neither left nor forgotten: it may come back with a farewell"
    world.forgotten["p2/1"] = world.lost.pop("p2/1")
    for name in world.peers:
        world.hear_forgotten(name, "p2/1")
    push(world, "p0")
    assert "p2/1" not in world.peers["p0"].sent
    report = world.audit()
    assert (report.written_off, report.balanced, report.missing) == (UNIT + UNIT // 2, True, {})


def test_what_waits_on_a_link_that_is_over_is_credited_first():
    world = World()
    [env] = push(world, "p2", "p0")
    world.deliver(env)
    world.begin("p0")
    world.renew("p2")
    world.gossip("p0", "p2")
    push(world, "p1", "p2")
    world.finish("p0", ["p2"])
    world.check()
    assert world.peers["p0"].over == {"p2": (0, -env.total)}
    assert world.audit().balanced


@pytest.mark.parametrize("mass", ["keep", "drop"])
@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_lost_in_a_storm_of_epochs(seed, mass):
    """Copies of everything ever sent come late, and again, while peers leave, come back, crash and are forgotten."""
    rng = Random(seed)
    rules = Rules(Buffer(limit=rng.choice([0, 1, 16]), mass=mass, newest_only=rng.random() < 0.7))
    world = World(4, rules, most=rng.choice([None, UNIT]))
    everything = []
    for _ in range(150):
        running = [name for name, peer in world.peers.items() if peer.status == "open"]
        idle = [name for name in running if world.page(world.peers[name]).taken is None]
        name, act = rng.choice(running), rng.random()
        if name in idle and act < 0.35:
            world.begin(name)
            if rng.random() < 0.6:
                others = rng.sample([other for other in running if other != name], 2)
                everything += world.finish(name, others)
        elif name not in idle and act < 0.5:
            everything += world.finish(name, []) if rng.random() < 0.7 else world.abort(name) or []
        elif act < 0.8 and everything:
            world.deliver(rng.choice(everything[-rng.choice([5, 1000]) :]), answer=rng.choice([True, False, "later"]))
        elif act < 0.84 and world.answers:
            world.hear(rng.choice(world.answers))
        elif act < 0.88:
            world.crash(name)
        elif act < 0.95 and len(idle) == len(running) and len(running) > 2:
            leaver = rng.choice(running)
            world.flying.clear()
            leaves_and_comes_back(world, leaver) if world.most is None else None
        elif len(running) > 3 and rng.random() < 0.3:
            world.renew(name, forget=rng.random() < 0.7)
        world.check()
        report = world.audit()
        assert (report.balanced, report.violations) == (True, [])
    world.settle()
    assert world.stranded() == 0


@pytest.mark.parametrize("rules", [EQUAL, LATEST, PARTS])
def test_methods_without_mass_keep_nothing_of_earlier_epochs(rules):
    peer = Peer.found("me", rules)
    for epoch in range(1, 200):
        for name in "abc":
            part = epoch % 3 if rules == PARTS else 0
            assert peer.receive(Envelope(f"{name}/{epoch}", "me/1", part, 5, 0, None)).news
        peer.begin()
        peer.finish([Contact(f"a/{epoch}", 1)], None)
    assert len(peer.credited) <= 3
    assert peer.receive(Envelope("a/7", "me/1", 0, 9, 0, None)).reason == "epoch"
    assert len(json.dumps(peer.save())) < 600
    assert len(peer.begin().models) == (3 if rules == LATEST else 0)


def test_random_swift_keeps_a_bounded_number_of_models_and_none_of_who_is_gone():
    peer = Peer.found("me", Rules(KeepLatest(limit=3), Equal()))
    for name in "abcda":
        peer.receive(Envelope(f"{name}/2", "me/1", 0, ord(name) + peer.events, 0, f"{name}'s"))
        peer.begin()
        peer.finish([], None)
    assert [env.payload for _, env in peer.begin().models] == ["a's", "c's", "d's"], "b's was the oldest"
    peer.abort()
    assert peer.receive(Envelope("a/1", "me/1", 0, 999, 0, "late")).reason == "epoch"
    peer.forget("c/2", 0)
    peer.forget("d/1", 0)
    assert [env.payload for _, env in peer.begin().models] == ["a's", "d's"]


def test_the_audit_of_a_dropped_link_knows_who_is_missing():
    world = World()
    push(world, "p0", "p2")
    deliver_all(world)
    leaves_and_comes_back(world, "p2")
    push(world, "p0", "p2")
    push(world, "p1", "p2")
    states = [world.disk[name][0] for name in world.disk]
    report = audit(states)
    assert (report.balanced, report.missing) == (True, {"p2": -UNIT}), "it brought a unit along, and gave it away"


@pytest.mark.parametrize("rules", [Rules(), EQUAL])
def test_answers_of_who_was_never_sent_anything_leave_nothing_behind(rules):
    peer = Peer.found("me", rules)
    peer.most = UNIT
    before = peer.save()
    for epoch in range(1, 50):
        peer.hear(Answer(f"a/{epoch}", 2, 0, 0))
    assert peer.save() == before


@pytest.mark.parametrize("waits", [False, True], ids=["credited", "waiting"])
def test_a_farewell_that_comes_after_a_later_epoch_lets_the_link_be_dropped(waits):
    peer = Peer.found("me")
    for epoch in range(1, 50):
        peer.receive(Envelope(f"a/{epoch}", "me/1", 0, 1, 5, None))
        if waits:
            peer.hear(Answer(f"a/{epoch + 1}", 1, 0, 0))
            peer.hear_farewell(Farewell(f"a/{epoch}", {}))
        peer.begin()
        peer.finish([], None)
        if not waits and epoch > 1:
            peer.hear_farewell(Farewell(f"a/{epoch - 1}", {}))
    assert max(len(peer.credited), len(peer.closed)) <= 2
    assert peer.held == UNIT + 49 * 5
    assert audit([peer.save()]).violations == []


def test_a_part_of_any_number_is_dropped_with_its_epoch():
    peer = Peer.found("me", PARTS)
    for part in (1, 2**32 - 1):
        peer.receive(Envelope("a/1", "me/1", part, 1, 0, None))
    for _ in range(2):
        peer.begin()
        peer.finish([], None)
        peer.receive(Envelope("a/2", "me/1", 3, 1, 0, None))
    assert list(peer.credited) == ["a/2#3"]
