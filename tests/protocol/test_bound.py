"""What is outstanding on a link never exceeds all mass there is: the rest is kept until more is confirmed."""

from pushcen.protocol import UNIT, Contact, Peer, audit

from .test_rules import deliver_all, push
from .world import World


def test_a_sender_keeps_what_its_link_has_no_room_for():
    world = World(most=UNIT // 4)
    [env] = push(world, "p0", "p1")
    assert (env.total, world.peers["p0"].held) == (UNIT // 4, UNIT * 3 // 4)
    assert push(world, "p0", "p1")[0].total == env.total, "served again, with no new mass"
    assert [env.total for env in push(world, "p0", "p1", "p2")][:1] == [UNIT // 4]
    world.check()


def test_what_is_confirmed_makes_room():
    world = World(most=UNIT // 4)
    push(world, "p0", "p1")
    deliver_all(world)
    world.gossip("p0", "p1")
    assert world.peers["p0"].room("p1/1") == 0, "accepted is not confirmed"
    push(world, "p1")
    world.gossip("p0", "p1")
    assert world.peers["p0"].room("p1/1") == UNIT // 4
    world.commit("p0")
    world.crash("p0")
    assert world.peers["p0"].room("p1/1") == UNIT // 4, "what was confirmed is durable"
    assert push(world, "p0", "p1")[0].total == UNIT // 2
    world.check()


def test_a_narrow_link_takes_nothing_from_the_others():
    peer = Peer.found("a")
    peer.most = UNIT // 2
    contacts = [Contact(f"{name}/1", 1) for name in "bcd"]
    peer.begin()
    peer.finish(contacts[:1], None)
    peer.sent["b/1"] -= 7
    peer.held += 7
    peer.begin()
    totals = {env.receiver: env.total for env in peer.finish(contacts, None)}
    share = (UNIT // 2 + 7) // 4
    assert totals == {"b/1": UNIT // 2, "c/1": share, "d/1": share}
    assert peer.held + sum(peer.sent.values()) == UNIT


def test_a_leaver_hands_over_as_there_is_room():
    world = World(most=UNIT // 4)
    world.leave("p0")
    for heir in ("p1", "p2"):
        world.hear_farewell(heir, world.farewells[0])
    for _ in range(2):
        world.hand_over("p0", ["p1", "p2"])
        assert not world.peers["p0"].gone
        deliver_all(world)
        for heir in ("p1", "p2"):
            push(world, heir)
            world.gossip("p0", heir)
        world.check()
    assert world.peers["p0"].gone
    assert world.peers["p1"].held + world.peers["p2"].held == 3 * UNIT


def test_a_bound_of_all_mass_changes_nothing_while_answers_come():
    bounded, free = World(most=3 * UNIT), World()
    for world in (bounded, free):
        for i in range(60):
            sender = f"p{i % 3}"
            push(world, sender, *({"p0", "p1", "p2"} - {sender} if i % 2 else {f"p{(i + 1) % 3}"}))
            deliver_all(world)
            for receiver in {"p0", "p1", "p2"} - {sender}:
                world.gossip(sender, receiver)
    assert [peer.held for peer in bounded.peers.values()] == [peer.held for peer in free.peers.values()]
    assert audit([peer.save() for peer in bounded.peers.values()]).balanced
