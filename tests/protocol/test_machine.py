"""Whatever happens, in whatever order: peers and the book agree, and no mass is lost or made."""

import os
import sys

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pushcen.protocol import UNIT, Buffer, Peer, Rules, name_of

from .world import World

SETTINGS = settings(
    max_examples=int(os.environ.get("PUSHCEN_EXAMPLES", "120")),
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


RARELY = st.sampled_from([False, False, False, True])


class Anything(RuleBasedStateMachine):
    peer = Peer
    mass = ("keep",)

    @initialize(data=st.data())
    def start(self, data):
        buffer = Buffer(
            limit=data.draw(st.sampled_from([0, 1, 2, 16])),
            mass=data.draw(st.sampled_from(self.mass)),
            newest_only=data.draw(st.booleans()),
        )
        full_after = data.draw(st.sampled_from([0, 1, 7]))
        most = data.draw(st.sampled_from([None, None, 4 * UNIT, UNIT, UNIT // 8]))
        self.world = World(4, Rules(buffer, full_after=full_after), self.peer, most)
        self.untold = []

    def names(self, *status):
        return [n for n, p in self.world.peers.items() if p.status in (status or ("open",))]

    def pick(self, data, names):
        return data.draw(st.sampled_from(sorted(names))) if names else None

    def running(self, yes):
        return [n for n in self.names() if (self.world.page(self.world.peers[n]).taken is not None) == yes]

    @rule(data=st.data())
    def begin(self, data):
        if name := self.pick(data, self.running(False)):
            self.world.begin(name)

    @rule(data=st.data())
    def abort(self, data):
        if name := self.pick(data, self.running(True)):
            self.world.abort(name)

    @rule(data=st.data(), lost=st.sampled_from([False] * 5 + [True]))
    def finish(self, data, lost):
        if name := self.pick(data, self.running(True)):
            others = [n for n in self.names() if n != name]
            receivers = data.draw(st.permutations(others))[: data.draw(st.integers(0, 3))]
            if data.draw(RARELY):  # an answer to a hello that has been overtaken by all that happened since
                stale = data.draw(st.sampled_from(self.world.contacts))
                receivers = [r for r in receivers if r != name_of(stale.peer)]
                receivers += [stale] if name_of(stale.peer) != name else []
            self.world.finish(name, receivers, lost, steps=data.draw(st.sampled_from([None, 0, 3, 7, 100])))

    @rule(data=st.data(), fates=st.lists(st.sampled_from(["arrives", "in doubt", "stays", "fails"]), max_size=6))
    def whole_event(self, data, fates):
        """Begin, finish, and what becomes of each envelope: the everyday course of things, so that it comes often."""
        if name := self.pick(data, self.running(False)):
            self.world.begin(name)
            others = [n for n in self.names() if n != name]
            envelopes = self.world.finish(name, data.draw(st.permutations(others))[:3])
            for env, fate in zip(envelopes, fates + ["arrives"] * len(envelopes), strict=False):
                if fate == "fails":
                    self.world.fail(env)
                elif fate != "stays":
                    self.world.deliver(env, answer=fate == "arrives")

    @rule(data=st.data())
    def everybody_in_turn(self, data):
        for name in data.draw(st.permutations(self.running(False))):
            self.world.begin(name)
            for env in self.world.finish(name, [n for n in self.names() if n != name]):
                self.world.deliver(env)

    @rule(data=st.data(), answer=st.sampled_from([False, True, "later"]), again=st.booleans())
    def deliver(self, data, answer, again):
        """Any envelope on its way: so there is every reordering. With `again` it stays on its way: a duplicate."""
        if self.world.flying:
            env = data.draw(st.sampled_from(self.world.flying))
            if not again:
                self.world.flying.remove(env)
            self.world.deliver(env, answer)

    @rule(data=st.data())
    def lose(self, data):
        """With no notice to anybody."""
        if self.world.flying:
            env = data.draw(st.sampled_from(self.world.flying))
            self.world.flying.remove(env)
            self.world.copies[env] += 1

    @rule(data=st.data())
    def fail_for_sure(self, data):
        if fresh := [env for env in self.world.flying if not self.world.copies[env]]:
            self.world.fail(data.draw(st.sampled_from(fresh)))

    @rule(data=st.data())
    def gossip(self, data):
        asker, receiver = self.pick(data, self.names("open", "leaving")), self.pick(data, self.names())
        if asker and receiver and asker != receiver:
            self.world.gossip(asker, receiver, later=data.draw(st.booleans()))

    @rule(data=st.data())
    def hear(self, data):
        """Any answer on its way: those of two boots or two epochs cross."""
        if self.world.answers:
            self.world.hear(data.draw(st.sampled_from(self.world.answers)))

    @rule(data=st.data(), then=st.sampled_from(["abort", "finish"]))
    def served_again_while_an_event_runs(self, data, then):
        """An answer was lost, so what the event has taken comes again, with a newer model."""
        sender, receiver = self.pick(data, self.running(False)), self.pick(data, self.running(False))
        if not sender or not receiver or sender == receiver:
            return
        self.world.begin(sender)
        for env in self.world.finish(sender, [receiver]):
            self.world.deliver(env, answer=False)
        self.world.begin(receiver)
        for env in self.world.serve(sender):
            self.world.deliver(env, answer=data.draw(st.booleans()))
        self.world.abort(receiver) if then == "abort" else self.world.finish(receiver, [])

    @rule(data=st.data(), restarts=st.sampled_from([True, True, False]), answer=st.sampled_from([True, "later"]))
    def a_first_push_arrives_after_the_second(self, data, restarts, answer):
        """And after its receiver has started again, perhaps: it has lost the second, and its sender must find out."""
        sender, receiver = self.pick(data, self.running(False)), self.pick(data, self.running(False))
        if not sender or not receiver or sender == receiver:
            return
        pushes = []
        for _ in range(2):
            self.world.begin(sender)
            pushes.append(self.world.finish(sender, [receiver]))
        for env in pushes[1]:
            self.world.deliver(env)
        if restarts:
            self.world.crash(receiver)
        for env in pushes[0]:
            self.world.deliver(env, answer)

    @precondition(lambda self: len(self.world.book) < 7)
    @rule(data=st.data(), forget=st.booleans())
    def answers_of_two_epochs_cross(self, data, forget):
        sender, receiver = self.pick(data, self.running(False)), self.pick(data, self.running(False))
        if not sender or not receiver or sender == receiver or len(self.names()) < 3:
            return
        self.world.begin(sender)
        self.world.finish(sender, [receiver])
        self.world.gossip(sender, receiver, later=True)
        earlier = self.world.answers[-1]
        self.world.renew(receiver, forget)
        self.world.gossip(sender, receiver)
        self.world.hear(earlier)
        self.world.begin(sender)
        self.world.finish(sender, [receiver] if data.draw(st.booleans()) else [])

    @precondition(lambda self: len(self.world.book) < 6)
    @rule(data=st.data(), left=st.booleans())
    def a_new_epoch_still_knows_who_is_gone(self, data, left):
        """With mass again, it sends none to who has left or was forgotten, whatever old hello it goes by."""
        if len(self.running(False)) < 4:
            return
        gone, name, other = data.draw(st.permutations(self.running(False)))[:3]
        stale = self.world.peers[gone].contact
        if left:
            self.world.leave(gone)
            self.world.hear_farewell(name, self.world.farewells[-1])
        else:
            self.world.forget(gone, [name])
            self.untold += [(who, stale.peer) for who in self.world.peers if who != name]
        self.world.renew(name)
        self.world.begin(other)
        for env in self.world.finish(other, [name]):
            self.world.deliver(env)
        self.world.begin(name)
        self.world.finish(name, [stale, other])

    @rule(data=st.data())
    def serve(self, data):
        if name := self.pick(data, self.names("open", "leaving")):
            self.world.serve(name, limit=2)

    @rule(data=st.data())
    def commit(self, data):
        if name := self.pick(data, self.names("open", "leaving")):
            self.world.commit(name)

    @rule(data=st.data())
    def crash(self, data):
        if name := self.pick(data, self.names("open", "leaving")):
            self.world.crash(name)

    @rule(data=st.data())
    def save_and_resume(self, data):
        """As a simulation does: nothing at all may change."""
        if name := self.pick(data, self.names("open", "leaving")):
            snapshot = self.world.peers[name].snapshot()
            self.world.peers[name] = self.peer.resume(snapshot, self.world.rules)
            self.world.peers[name].most = self.world.most
            assert self.world.peers[name].snapshot() == snapshot

    @precondition(lambda self: len(self.world.book) < 7)
    @rule()
    def join(self):
        self.world.add(self.peer.join(f"p{len(self.world.book)}x", self.world.rules))

    @rule(data=st.data(), really=RARELY)
    def leave(self, data, really):
        if really and len(self.names()) > 2 and (name := self.pick(data, self.running(False))):
            self.world.leave(name)

    @rule(data=st.data())
    def hear_farewell(self, data):
        if self.world.farewells and (name := self.pick(data, self.names("open", "leaving"))):
            self.world.hear_farewell(name, data.draw(st.sampled_from(self.world.farewells)))

    @rule(data=st.data())
    def hand_over(self, data):
        if (name := self.pick(data, self.names("leaving"))) and self.names():
            self.world.hand_over(name, data.draw(st.permutations(self.names()))[:2])

    @rule(data=st.data())
    def retire(self, data):
        if done := [n for n in self.names("leaving") if self.world.peers[n].gone]:
            self.world.retire(self.pick(data, done), back=len(self.world.book) < 9 and data.draw(st.booleans()))

    @precondition(lambda self: len(self.world.book) < 7)
    @rule(data=st.data(), really=RARELY)
    def renew(self, data, really):
        if really and len(self.names()) > 2 and (name := self.pick(data, self.names())):
            self.world.renew(name)

    @precondition(lambda self: len(self.world.book) < 7)
    @rule(data=st.data())
    def come_back_in_a_later_epoch(self, data):
        """The state was lost; that somebody has to be forgotten is found out later."""
        if name := self.pick(data, self.names()):
            self.world.renew(name, forget=False)

    @rule(data=st.data(), really=RARELY)
    def forget_who_came_back(self, data, really):
        if really and self.world.lost:
            who = data.draw(st.sampled_from(sorted(self.world.lost)))
            self.world.forgotten[who] = self.world.lost.pop(who)
            self.untold += [(other, who) for other in self.world.peers]

    @rule(data=st.data(), really=RARELY)
    def forget(self, data, really):
        if really and len(self.names()) > 2 and (name := self.pick(data, self.names())):
            who = self.world.peers[name].me
            self.world.forget(name, [])
            self.untold += [(other, who) for other in self.world.peers]

    @rule(data=st.data())
    def hear_forgotten(self, data):
        if self.untold:
            name, who = data.draw(st.sampled_from(self.untold))
            self.untold.remove((name, who))
            if name in self.world.peers:
                self.world.hear_forgotten(name, who)

    @invariant()
    def books_agree(self):
        if hasattr(self, "world"):
            self.world.check()
            report = self.world.audit()
            assert report.violations == []
            assert report.balanced

    def teardown(self):
        if hasattr(self, "world") and sys.exc_info()[0] is None:
            self.world.settle()
            leavers = {p.me for p in self.world.peers.values() if p.status == "leaving"}
            assert self.world.stranded() == 0 or leavers, "rule 17"


class AnythingWithDrop(Anything):
    mass = ("drop",)


@pytest.mark.parametrize("machine", [Anything, AnythingWithDrop])
def test_no_mass_is_lost_or_made_whatever_happens(machine):
    run_state_machine_as_test(machine, settings=SETTINGS)
