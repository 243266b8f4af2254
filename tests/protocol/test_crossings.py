"""Two epochs, two boots, two answers that cross; what is served again while an event runs; who comes back forgotten."""

import pytest

from pushcen.errors import ProtocolError
from pushcen.protocol import UNIT, Answer, Buffer, Contact, Envelope, Farewell, Peer, Rules

from .test_rules import push
from .world import World


def envelope(sequence, total, payload=None, sender="a/1"):
    return Envelope(sender, "me/1", 0, sequence, total, payload)


def test_a_push_to_a_later_epoch_does_not_serve_the_earlier_one():
    world = World()
    push(world, "p0", "p1")
    world.renew("p1", forget=False)
    assert [env.receiver for env in push(world, "p0", "p1")] == ["p1/2"]
    assert list(world.peers["p0"].unsettled) == ["p1/2"]
    world.check()


def test_an_earlier_epoch_that_is_heard_late_is_not_tried_again():
    world = World()
    push(world, "p0", "p1")
    world.gossip("p0", "p1", later=True)
    world.renew("p1", forget=False)
    world.gossip("p0", "p1")
    world.hear(world.answers[0])
    assert not world.peers["p0"].unsettled
    assert [env.receiver for env in push(world, "p0", "p1")] == ["p1/2"]
    assert world.peers["p0"].serve("model", 9)[0].receiver == "p1/2"


@pytest.mark.parametrize("met", ["sent to", "credited", "credited by this event"])
@pytest.mark.parametrize("restored", [False, True])
def test_an_epoch_before_the_first_one_met_is_over_too(met, restored):
    peer = Peer.found("me")
    if met != "sent to":
        peer.receive(envelope(1, 5, sender="a/2"))
    peer.begin()
    if met != "credited by this event":
        peer.finish([Contact("a/2", 1)] if met == "sent to" else [], None)
        peer = Peer.restore(peer.save()) if restored else peer
        assert peer.receive(envelope(1, 5)).reason == "epoch"
        peer.begin()
    assert [env.receiver for env in peer.finish([Contact("a/1", 1), Contact("b/1", 1)], None)][:1] == ["b/1"]
    assert "a/1" not in peer.sent


@pytest.mark.parametrize("who", ["a/1", "a/2", "b/1", "b/2", "b/3"])
@pytest.mark.parametrize("left", [False, True])
def test_who_is_gone_is_so_for_a_resumed_peer_as_for_one_that_never_stopped(who, left):
    peer = Peer.found("me")
    peer.begin()
    peer.finish([Contact("a/1", 1), Contact("b/2", 1)], None)
    again = Peer.resume(peer.snapshot())
    for one in (peer, again):
        one.hear_farewell(Farewell(who, {})) if left else one.forget(who, 0)
    assert again.snapshot() == peer.snapshot()


def test_a_restored_peer_knows_which_epochs_are_over():
    world = World()
    stale = world.peers["p1"].contact
    push(world, "p0", "p1")
    world.renew("p1", forget=False)
    world.gossip("p0", "p1")
    world.commit("p0")
    world.crash("p0")
    assert push(world, "p0", stale) == []


def test_an_envelope_of_an_epoch_that_is_over_is_refused():
    world = World()
    [late] = push(world, "p1", "p0")
    push(world, "p0", "p1")
    world.renew("p1", forget=False)
    push(world, "p0", "p1")
    assert not world.deliver(late).news
    world.check()


@pytest.mark.parametrize("total_of_late", ["first", "second"])
def test_a_late_arrival_in_a_later_boot_unsettles_what_the_earlier_boot_had(total_of_late):
    world = World()
    [first], [second] = push(world, "p0", "p1"), push(world, "p0", "p1")
    world.deliver(second)
    assert not world.peers["p0"].unsettled
    world.crash("p1")
    world.deliver(first if total_of_late == "first" else second)
    assert ("p1/1" in world.peers["p0"].unsettled) == (total_of_late == "first")
    world.check()


def test_a_failure_does_not_settle_what_a_later_boot_has_lost():
    world = World()
    [first], [second] = push(world, "p0", "p1"), push(world, "p0", "p1")
    world.deliver(second)
    [third] = push(world, "p0", "p1")
    world.crash("p1")
    world.deliver(first)
    world.fail(third)
    assert "p1/1" in world.peers["p0"].unsettled
    world.check()


def test_an_older_arrival_in_the_same_boot_says_nothing():
    world = World()
    [first], [second] = push(world, "p0", "p1"), push(world, "p0", "p1")
    world.deliver(second)
    world.peers["p0"].arrived(first, boot=1)
    assert not world.peers["p0"].unsettled


def test_an_arrival_says_what_hearing_it_would():
    peer, other = Peer.found("a"), Contact("b/1", 1)
    peer.begin()
    [env] = peer.finish([other], None)
    with pytest.raises(ProtocolError, match="older copy"):
        peer.arrived(env._replace(total=env.total + 1), 1)
    with pytest.raises(ProtocolError, match="says nothing to a/1"):
        peer.arrived(env._replace(sender="c/1"), 1)
    peer.hear(Answer("b/1", 3, 0, 0))
    peer.arrived(env, 2)
    assert list(peer.unsettled) == ["b/1"], "boot 2 is over"


@pytest.mark.parametrize("mass", ["keep", "drop"])
def test_abort_after_an_event_was_served_again_keeps_the_mass_and_the_newer_model(mass):
    peer = Peer.found("me", Rules(Buffer(limit=1, mass=mass)))
    peer.receive(envelope(1, 10, "old"))
    peer.begin()
    peer.receive(envelope(2, 10, "new"))
    peer.receive(envelope(3, 10, "newer"))
    peer = Peer.resume(peer.snapshot(), peer.rules)
    assert peer.abort() == []
    assert not peer.receive(envelope(3, 10)).news
    [(weight, env)] = peer.begin().models
    assert (weight, env.payload) == (10, "newer" if mass == "keep" else "old")
    peer.finish([], None)
    assert (peer.held, peer.destroyed) == (UNIT + 10, {})


def test_abort_after_serving_again_and_a_fold_counts_everything_once():
    peer = Peer.found("me", Rules(Buffer(limit=1)))
    peer.receive(envelope(1, 10, "old"))
    peer.begin()
    peer.receive(envelope(2, 10, "new"))
    peer.receive(envelope(3, 15, "folded"))
    assert peer.receive(envelope(1, 1, sender="b/1")).fold[0] == 5
    peer.receive(envelope(4, 15, "served again"))
    assert [(weight, env.payload) for weight, env in peer.abort()] == [(10, "new")]
    event = peer.begin()
    assert (event.folded, [weight for weight, _ in event.models]) == (15, [1])
    peer.finish([], None)
    assert peer.held == UNIT + 16


def test_a_new_epoch_sends_nothing_to_who_was_forgotten_or_left():
    world = World(founders=4)
    contacts = {name: peer.contact for name, peer in world.peers.items()}
    world.forget("p1", ["p0"])
    world.leave("p2")
    world.hear_farewell("p0", world.farewells[0])
    fresh = world.peers["p0"].renewed(2)
    fresh.held = UNIT
    fresh.begin()
    assert [env.receiver for env in fresh.finish([contacts[name] for name in ("p1", "p2", "p3")], None)] == ["p3/1"]


def test_forget_closes_whatever_is_listed_already():
    peer = Peer.found("me")
    state = peer.save() | {"forgotten": {"b/1": UNIT, "c/1": 0}}
    peer = Peer.restore(state)
    assert peer.closed == {"b/1", "c/1"}
    peer.closed.clear()
    peer.forget("b/1", UNIT)
    assert peer.closed == {"b/1"}


def test_who_has_left_in_a_later_epoch_takes_nothing_in_an_earlier_one():
    peer = Peer.found("me")
    peer.forget("b/2", 0)
    peer.begin()
    assert peer.finish([Contact("b/1", 1)], None) == []
