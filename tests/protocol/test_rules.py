"""Each numbered rule of docs/protocol.md: a story that needs it, and a peer without it, on which it must fail."""

import pytest

from pushcen.errors import ProtocolError
from pushcen.protocol import UNIT, Answer, Buffer, Peer, Receipt, Rules, peer_id

from .world import World


def push(world, sender, *receivers):
    world.begin(sender)
    return world.finish(sender, receivers)


def deliver_all(world):
    for env in list(world.flying):
        world.deliver(env)
    world.flying.clear()


# --- 1: sequences never fall
def sequences_never_fall(world):
    for _ in range(2):
        push(world, "p0", "p1")
        deliver_all(world)
        world.check()
    push(world, "p1")
    world.check()


class FallingSequence(Peer):
    def finish(self, *arguments):
        self.sequence = 0
        return super().finish(*arguments)


# --- 2: only what is newer than the top is accepted
def a_repeat_is_refused(world):
    [env] = push(world, "p0", "p1")
    world.deliver(env)
    push(world, "p1")
    world.deliver(env)
    world.check()


class Forgetful(Peer):
    def receive(self, envelope):
        self.credited.clear()
        return super().receive(envelope)


# --- 3: a replaced entry's share goes to the newer one
def a_replaced_share_is_kept(world):
    push(world, "p0", "p1")
    push(world, "p0", "p1")
    deliver_all(world)
    world.begin("p1")


class Careless(Peer):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._mailbox._keep = False


# --- 4: abort puts everything back
def abort_puts_back(world):
    push(world, "p0", "p1")
    deliver_all(world)
    world.begin("p1")
    world.abort("p1")
    world.check()
    world.begin("p1")


class NoWayBack(Peer):
    def abort(self):
        self._taken = None
        self._mailbox._event = None
        return []


# --- 5: who has little serves few, keeps something, and sends nothing empty
def three_quanta_serve_two(world):
    world.add(world.peer_class(peer_id("poor", 1), 3, world.rules))
    assert len(push(world, "poor", "p0", "p1", "p2")) == 2
    assert world.peers["poor"].held == 1
    world.check()


class Spendthrift(Peer):
    def finish(self, receivers, payload):
        taken, self._taken = self._taken, None
        self._mailbox.close()
        self.held += taken
        return self._push(receivers, self.held // (len(receivers) + 1), payload, 10)


# --- 6: what comes back while an event runs is not forgotten at its end
def returns_during_an_event_count(world):
    [env] = push(world, "p0", "p1")
    world.begin("p0")
    world.fail(env)
    world.finish("p0", ["p2"])
    world.check()


class Snapshotter(Peer):
    __slots__ = ("before",)

    def begin(self):
        self.before = self.held
        return super().begin()

    def finish(self, *arguments):
        self.held = self.before
        return super().finish(*arguments)


# --- 7: only what surely failed, and is the newest on its link, comes back
def an_overtaken_failure_returns_nothing(world):
    [first] = push(world, "p0", "p1")
    push(world, "p0", "p1")
    world.fail(first)
    deliver_all(world)
    push(world, "p1")
    world.commit("p0")
    world.check()
    assert world.audit().violations == []


class Greedy(Peer):
    def failed(self, envelope):
        self.sent[envelope.receiver] -= envelope.total
        self.held += envelope.total
        return envelope.total


# --- 8: an answer says what is committed as credited, not what merely came in
def accepted_is_not_credited(world):
    world.leave("p0")
    world.hand_over("p0", ["p1"])
    deliver_all(world)
    world.gossip("p0", "p1")
    assert not world.peers["p0"].gone
    push(world, "p1")
    world.gossip("p0", "p1")
    assert world.peers["p0"].gone


class Boaster(Peer):
    def answer(self, asker):
        answer = super().answer(asker)
        return answer._replace(credited=answer.accepted)


# --- 9: accepted by an earlier boot is not accepted
def a_restart_unsettles(world):
    [env] = push(world, "p0", "p1")
    world.deliver(env)
    late = world.peers["p1"].answer("p0/1")
    world.crash("p1")
    world.gossip("p0", "p1")
    world.peers["p0"].hear(late)
    assert "p1/1" in world.peers["p0"].unsettled


class SameBoot(Peer):
    @classmethod
    def restore(cls, state, rules):
        return super().restore({**state, "boot": state["boot"] - 1}, rules)


# --- 10: unsettled links are served beside the receivers, with no new mass
def doubt_is_repaired(world):
    [lost] = push(world, "p0", "p1")
    world.flying.clear()
    envelopes = push(world, "p0", "p2")
    assert [env.receiver for env in envelopes] == ["p2/1", "p1/1"]
    assert envelopes[1].total == lost.total
    deliver_all(world)
    assert not world.peers["p0"].unsettled


class NoRepair(Peer):
    def _push(self, receivers, share, payload, repairs):
        return super()._push(receivers, share, payload, 0)


# --- 11: a repeat is the same envelope again, and settles its link with no commit
def a_repeat_settles(world):
    [env] = push(world, "p0", "p1")
    before = world.peers["p0"].save()
    world.deliver(env, answer=False)
    assert world.peers["p0"].save() == before
    assert world.deliver(env) == Receipt(False, None, "old")
    assert not world.peers["p0"].unsettled


class Unhearing(Peer):
    def arrived(self, envelope, boot):
        if envelope.sequence != self.sequence or self.events:
            return
        super().arrived(envelope, boot)


# --- 12: who joins has nothing, trains, pushes nothing, and adopts the first mass
def joining_brings_nothing(world):
    world.add(world.peer_class.join("late", world.rules))
    event = world.begin("late")
    assert (event.own, event.models, event.adopts) == (UNIT, [], False)
    assert world.finish("late", ["p0", "p1"]) == []
    push(world, "p0", "late")
    deliver_all(world)
    event = world.begin("late")
    assert (event.own, len(event.models), event.adopts) == (0, 1, True)
    assert len(world.finish("late", ["p0"])) == 1
    world.check()


class Inventor(Peer):
    @classmethod
    def join(cls, name, rules):
        return cls.found(name, rules)


# --- 13: a new epoch has no mass, and takes nothing meant for the old one
def a_new_epoch_is_empty(world):
    [env] = push(world, "p0", "p1")
    old = world.peers["p1"]
    world.renew("p1")
    fresh = world.peers["p1"]
    assert (fresh.me, fresh.held) == ("p1/2", 0)
    with pytest.raises(ProtocolError, match="not for p1/2"):
        fresh.receive(env)
    assert old.me == "p1/1"
    world.check()


class Reborn(Peer):
    def renewed(self, epoch):
        peer = super().renewed(epoch)
        peer.held = self.held
        return peer


# --- 14: senders take back what a leaver never credited; the leaver hands over the rest
def leaving_in_good_order(world):
    push(world, "p0", "p1")
    deliver_all(world)
    world.leave("p1")
    [farewell] = world.farewells
    world.hear_farewell("p0", farewell)
    world.hear_farewell("p0", farewell)
    assert world.peers["p0"].held == UNIT
    world.hand_over("p1", ["p0", "p2"])
    deliver_all(world)
    push(world, "p0")
    push(world, "p2")
    world.gossip("p1", "p0")
    world.gossip("p1", "p2")
    world.retire("p1")
    world.check()
    assert sum(peer.held for peer in world.peers.values()) == 3 * UNIT


class Clinging(Peer):
    def hear_farewell(self, farewell):
        return 0


# --- 15: a forgotten peer's links are closed both ways, and what it had is written off
def forgetting_closes_both_ways(world):
    push(world, "p0", "p1")
    [env] = push(world, "p1", "p0")
    forgotten = world.peers["p1"]
    contact = forgotten.contact
    world.forget("p1", ["p0", "p2"])
    assert world.deliver(env) == Receipt(False, None, "forgotten")
    world.begin("p0")
    assert world.peers["p0"].finish([contact], "model") == []
    report = world.audit()
    assert (report.written_off, report.balanced) == (UNIT + UNIT // 2, True)
    forgotten.forget(forgotten.me, UNIT)
    with pytest.raises(ProtocolError, match="forgotten"):
        forgotten.begin()


class Faithful(Peer):
    def forget(self, who, founded):
        if who == self.me:
            super().forget(who, founded)


# --- 16: on every link credited <= sent, which only holds if a commit comes before every send
def commits_come_first(world):
    world.commit_before_send = not isinstance(world.peers["p0"], Hasty)
    push(world, "p0", "p1")
    deliver_all(world)
    push(world, "p1")
    world.commit("p1")
    world.crash("p0")
    report = world.audit()
    assert report.balanced, "one's own books always balance"
    assert report.violations == [], "so it is the links that show it"


class Hasty(Peer):
    """Sends before it commits; the world sees to that."""


# --- 17: on a perfect network, serving unsettled links alone brings everything home
def everything_comes_home(world):
    for _ in range(3):
        for name in ("p0", "p1", "p2"):
            push(world, name, *({"p0", "p1", "p2"} - {name}))
        world.flying.clear()
    assert world.stranded() > 0
    world.settle()
    assert world.stranded() == 0


class Idle(NoRepair):
    pass


RULES = {
    1: (sequences_never_fall, FallingSequence),
    2: (a_repeat_is_refused, Forgetful),
    3: (a_replaced_share_is_kept, Careless),
    4: (abort_puts_back, NoWayBack),
    5: (three_quanta_serve_two, Spendthrift),
    6: (returns_during_an_event_count, Snapshotter),
    7: (an_overtaken_failure_returns_nothing, Greedy),
    8: (accepted_is_not_credited, Boaster),
    9: (a_restart_unsettles, SameBoot),
    10: (doubt_is_repaired, NoRepair),
    11: (a_repeat_settles, Unhearing),
    12: (joining_brings_nothing, Inventor),
    13: (a_new_epoch_is_empty, Reborn),
    14: (leaving_in_good_order, Clinging),
    15: (forgetting_closes_both_ways, Faithful),
    16: (commits_come_first, Hasty),
    17: (everything_comes_home, Idle),
}


@pytest.mark.parametrize("number", RULES)
def test_rule_holds(number):
    story, _ = RULES[number]
    story(World(rules=Rules(Buffer(limit=4))))


@pytest.mark.parametrize("number", RULES)
def test_story_fails_without_the_rule(number):
    story, broken = RULES[number]
    with pytest.raises((AssertionError, ProtocolError, pytest.fail.Exception)):
        story(World(rules=Rules(Buffer(limit=4)), peer=broken))


def test_one_silent_peer_swallows_the_mass_of_those_who_push_without_a_hello():
    for answered_only in (True, False):
        world = World()
        for _ in range(30):
            for name, other in (("p0", "p1"), ("p1", "p0")):
                push(world, name, other, *([] if answered_only else ["p2"]))
            for env in world.flying:
                if env.receiver != "p2/1":
                    world.deliver(env)
            world.flying.clear()
        live = sum(world.peers[name].held + world.peers[name].waiting for name in ("p0", "p1"))
        assert (live == 2 * UNIT) if answered_only else (live < UNIT / 100)
        world.check()


def test_an_epoch_heard_of_later_does_not_undo_what_the_old_one_passed_on():
    """A hello in another epoch is no proof that a push failed: the old epoch may have credited and passed it on."""
    world = World()
    [env] = push(world, "p0", "p1")
    world.deliver(env, answer=False)
    push(world, "p1", "p2")
    deliver_all(world)
    push(world, "p2")
    world.renew("p1")
    push(world, "p0", "p1")
    assert world.peers["p0"].failed(env) == 0
    world.check()
    assert sum(peer.held for peer in world.peers.values()) < 3 * UNIT


def test_an_older_copy_of_a_sender_is_found_out():
    world = World()
    old = world.peers["p0"].save()
    push(world, "p0", "p1")
    deliver_all(world)
    push(world, "p1")
    copied_back = Peer.restore(old)
    with pytest.raises(ProtocolError, match="older copy"):
        copied_back.hear(world.peers["p1"].answer("p0/1"))
    assert isinstance(world.peers["p1"].answer("p0/1"), Answer)
