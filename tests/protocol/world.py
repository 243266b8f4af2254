"""A small world of peers on a network that does its worst, with a book of its own beside them.

The book never looks into a peer. It follows each envelope's increment by sequence number, splits masses by itself,
and rolls back with a crash, so that what a peer says it holds can be held against what it must hold.
"""

import copy
from collections import defaultdict
from fractions import Fraction
from math import inf

from pushcen.protocol import UNIT, Peer, Rules, audit, epoch_of, name_of, peer_id

from .inbox import Inbox


class Page:
    """What the book knows of one peer: its mass, each increment it sent, and up to where it has credited."""

    def __init__(self, held, inbox=None):
        self.held = held
        self.inbox = inbox  # if it is known what must wait
        self.sent = defaultdict(dict)  # receiver -> sequence -> added
        self.credited = {}  # sender -> sequence
        self.accepted = {}  # sender -> sequence, credited or not
        self.taken = None
        self.closed = set()
        self.confirmed = {}  # receiver -> what it said it has committed
        self.epochs = {}  # name -> the latest epoch it has dealt with

    def meets(self, who):
        """Note that there is a link with `who`, or that it spoke where there is one with its name."""
        self.epochs[name_of(who)] = max(epoch_of(who), self.epochs.get(name_of(who), 0))

    def is_over(self, who):
        return epoch_of(who) < self.epochs.get(name_of(who), 0)

    def committed(self):
        page = copy.deepcopy(self)
        page.accepted, page.taken = dict(page.credited), None
        page.inbox = page.inbox and Inbox(page.inbox.keep)
        return page


class World:
    def __init__(self, founders=3, rules=None, peer=Peer, most=None):
        self.most = most
        self.rules = rules or Rules()
        self.peer_class = peer
        self.peers = {}  # by name: those that run
        self.book = {}  # by identity, for ever
        self.disk = {}  # by name: (saved peer, committed page)
        self.flying = []  # envelopes on their way; one may be there twice
        self.copies = defaultdict(int)  # by envelope: how often it left its sender's machine
        self.answers = []  # on their way back: (asker, how it hears it)
        self.contacts = []  # whatever a hello has ever shown
        self.farewells = []
        self.left = []  # what peers saved last that are gone
        self.lost = {}  # who came back in a later epoch, and was not forgotten -> founded with
        self.forgotten = {}  # who -> founded with
        self.founded = 0
        self.destroyed_by_the_gone = 0
        self.commit_before_send = True
        for i in range(founders):
            self.add(peer.found(f"p{i}", self.rules))

    # what the book says
    def page(self, peer):
        return self.book[peer.me]

    def share(self, sender, receiver, above, upto):
        return sum(a for seq, a in self.book[sender].sent[receiver].items() if above < seq <= upto)

    def credit(self, sender, receiver):
        return self.share(sender, receiver, 0, self.book[receiver].credited.get(sender, 0))

    def waits(self, peer, upto):
        """What waits for `peer` on each link, above what it has credited, up to the sequences in `upto`."""
        credited = self.page(peer).credited
        return {
            s: self.share(s, peer.me, credited.get(s, 0), top) for s, top in upto.items() if top > credited.get(s, 0)
        }

    def on_links(self):
        """All increments above what their receivers have credited, between peers that were not forgotten."""
        return sum(
            self.share(sender, receiver, self.book[receiver].credited.get(sender, 0), 2**63)
            for sender, page in self.book.items()
            for receiver in list(page.sent)
            if sender not in self.forgotten and receiver not in self.forgotten
        )

    def live(self):
        return [page for who, page in self.book.items() if who not in self.forgotten]

    def written_off(self):
        """What went with the forgotten: their own mass, and what was sent to them and will never be credited."""
        gone = sum(self.book[who].held for who in self.forgotten)
        for sender, page in self.book.items():
            for receiver in list(page.sent):
                if sender in self.forgotten or receiver in self.forgotten:
                    gone += self.share(sender, receiver, self.book[receiver].credited.get(sender, 0), 2**63)
        return gone

    def check(self):
        for name, peer in self.peers.items():
            page = self.page(peer)
            assert peer.held == page.held, f"{name} holds {peer.held}, must be {page.held}"
            assert peer.held >= 0
            for receiver, total in peer.sent.items():
                assert total == sum(page.sent[receiver].values()), f"{name} -> {receiver}"
            if peer.rules.inbox.mass == "keep":
                assert peer.waiting == sum(self.waits(peer, page.accepted).values()), name
            self.check_settled(peer)
            if self.most is not None:
                outstanding = {
                    other: sum(added.values()) - self.credit(peer.me, other) for other, added in page.sent.items()
                }
                assert max(outstanding.values(), default=0) <= self.most, "more is outstanding than there ever was"
        destroyed = sum(sum(peer.destroyed.values()) for peer in self.peers.values())
        destroyed += self.destroyed_by_the_gone
        held = sum(page.held for page in self.live())
        assert held + self.on_links() + self.written_off() + destroyed == self.founded

    def check_settled(self, peer):
        """Rule 9: a link that is not unsettled was accepted in full by the boot that its sender knows."""
        for receiver, total in peer.sent.items():
            other = self.peers.get(name_of(receiver))
            if other is None or other.me != receiver or other.status != "open" or receiver in peer.closed:
                continue
            if receiver not in peer.unsettled and other.boot == peer.boots.get(receiver, 1):
                assert other.answer(peer.me).accepted == total, f"{peer.me} -> {receiver} is not settled"

    def audit(self):
        return audit([*self.left, *(self.disk[name][0] for name in self.disk)])

    # what happens
    def add(self, peer):
        peer.most = self.most
        self.peers[name_of(peer.me)] = peer
        rule = self.rules.inbox
        roomy = rule.newest_only and rule.limit in (0, 16)  # nothing has to make room
        self.book[peer.me] = Page(peer.held, Inbox(rule.mass == "keep") if roomy else None)
        self.founded += peer.held
        self.contacts.append(peer.contact)
        self.commit(name_of(peer.me))

    def commit(self, name):
        peer = self.peers[name]
        self.disk[name] = (peer.save(), self.page(peer).committed())

    def begin(self, name):
        peer = self.peers[name]
        page = self.page(peer)
        page.taken = dict(page.accepted)
        shares = self.waits(peer, page.taken)
        event = peer.begin()
        if peer.rules.inbox.mass == "keep":
            total = sum(shares.values())
            assert event.folded + sum(weight for weight, _ in event.models) == total
            assert event.own == (page.held if page.held or total else UNIT)
            assert event.adopts == (page.held == 0 and total > 0)
        if page.inbox:
            models = {env.sender: (weight, env.payload) for weight, env in event.models}
            assert (models, event.folded) == (page.inbox.begin(), 0)
        senders = [env.sender for _, env in event.models]
        assert senders == sorted(senders)
        return event

    def abort(self, name):
        page = self.page(self.peers[name])
        folds = self.peers[name].abort()
        page.taken = None
        if page.inbox:
            page.inbox.abort()
            assert not folds
            waiting = {env.sender: (share, env.payload) for share, env in self.peers[name].peek()}
            assert waiting == page.inbox.waiting

    def finish(self, name, receivers, lost=False, steps=None):
        """End the event and send; `lost`: the sender dies between commit and send. Receivers are names, or contacts."""
        peer = self.peers[name]
        page = self.page(peer)
        contacts = [self.peers[r].contact if isinstance(r, str) else r for r in receivers]
        arrived = sum(self.waits(peer, page.taken).values())
        destroyed = -sum(peer.destroyed.values())
        trained = {} if steps is None else {"steps": steps}
        envelopes = peer.finish(contacts, f"{name}'s model {peer.events}", **trained)
        destroyed += sum(peer.destroyed.values())
        page.held += arrived - destroyed
        page.credited.update(page.taken)
        page.taken = None
        if page.inbox:
            page.inbox.finish()
        for sender in page.credited:  # before the split: what is merged now tells which epochs are over
            page.meets(sender)
        takes = [
            c.peer not in page.closed and not page.is_over(c.peer) and self.room(page, c.peer) > 0 for c in contacts
        ]
        open_ones = [contact.peer for contact, yes in zip(contacts, takes, strict=True) if yes]
        served = open_ones[: max(0, page.held - 1)]
        share = page.held // (len(served) + 1)
        if served and steps is not None and self.rules.full_after:
            share = max(1, int(share * Fraction(min(steps, self.rules.full_after), self.rules.full_after)))
        for env in envelopes[: len(served)]:
            added = min(share, self.room(page, env.receiver))
            page.held -= added
            page.sent[env.receiver][env.sequence] = added
        for other in served:
            page.meets(other)
        received = [env.receiver for env in envelopes[: len(served)]]
        assert (received == served) if self.most is None else (sorted(received) == sorted(served))
        assert len({env.receiver for env in envelopes}) == len(envelopes)
        self.send(name, envelopes, lost)
        return envelopes

    def serve(self, name, limit=10):
        envelopes = self.peers[name].serve(payload=f"{name}'s model, again {self.peers[name].sequence}", limit=limit)
        self.send(name, envelopes)
        return envelopes

    def send(self, name, envelopes, lost=False):
        page = self.page(self.peers[name])
        for env in envelopes:
            assert env.total == sum(page.sent[env.receiver].values())
            page.sent[env.receiver].setdefault(env.sequence, 0)
        if self.commit_before_send:
            self.commit(name)
        if lost:
            self.crash(name)
        else:
            self.flying += envelopes

    def room(self, page, receiver):
        """How much more may be sent to a receiver before it confirms some of it."""
        if self.most is None:
            return inf
        return self.most - sum(page.sent[receiver].values()) + page.confirmed.get(receiver, 0)

    def deliver(self, env, answer=True):
        """Let a copy of `env` arrive; its receiver's answer may be lost, or come "later"."""
        self.copies[env] += 1
        peer = self.peers.get(name_of(env.receiver))
        if peer is None or peer.me != env.receiver or peer.status != "open":
            return None
        page = self.page(peer)
        news = env.sequence > page.accepted.get(env.sender, 0) and env.sender not in peer.forgotten
        before = peer.snapshot()
        receipt = peer.receive(env)
        if news and receipt.news:
            share = self.share(env.sender, peer.me, page.accepted.get(env.sender, 0), env.sequence)
            if page.inbox:
                page.inbox.accept(env.sender, share, env.payload)
            page.accepted[env.sender] = env.sequence
        else:
            assert not receipt.news
            assert not news or page.is_over(env.sender), "only an epoch that is over is refused beside what is old"
            assert peer.snapshot() == before, "what is refused changes nothing, not even order"
        sender = self.peers.get(name_of(env.sender))
        if sender is not None and sender.me == env.sender:
            if answer == "later":
                self.answers.append((env.sender, ("arrived", env, peer.boot)))
            elif answer:
                sender.arrived(env, peer.boot)
        return receipt

    def fail(self, env):
        """Let `env` fail for sure. Only one that never left, in no copy, can."""
        assert not self.copies[env]
        self.flying = [other for other in self.flying if other != env]
        sender = self.peers.get(name_of(env.sender))
        if sender is None or sender.me != env.sender:
            return
        page = self.page(sender)
        sent = page.sent[env.receiver]
        back = (
            sent.get(env.sequence, 0) if max(sent, default=0) == env.sequence and env.receiver not in page.closed else 0
        )
        given = sender.failed(env)
        if given:
            assert given == back
            sent[env.sequence] = 0
            page.held += back

    def gossip(self, asker, receiver, later=False):
        a, b = self.peers[asker], self.peers[receiver]
        self.contacts.append(b.contact)
        self.answers.append((a.me, ("hear", b.answer(a.me))))
        if not later:
            self.hear(self.answers[-1])

    def hear(self, answer):
        """Let one of the answers under way come back."""
        self.answers.remove(answer)
        asker, (how, *said) = answer
        peer = self.peers.get(name_of(asker))
        if peer is None or peer.me != asker:
            return
        getattr(peer, how)(*said)
        if how == "hear":
            page = self.page(peer)
            page.confirmed[said[0].peer] = max(said[0].credited, page.confirmed.get(said[0].peer, 0))
        who = said[0].peer if how == "hear" else said[0].receiver
        page = self.page(peer)
        if who not in page.closed and (page.sent.get(who) or name_of(who) in page.epochs):
            page.meets(who)

    def crash(self, name):
        """Kill a peer and start it again from its last commit."""
        state, page = self.disk[name]
        self.peers[name] = self.peer_class.restore(state, self.rules)
        self.peers[name].most = self.most
        self.contacts.append(self.peers[name].contact)
        self.book[self.peers[name].me] = copy.deepcopy(page)
        self.commit(name)

    def leave(self, name):
        peer = self.peers[name]
        self.farewells.append(peer.leave())
        page = self.page(peer)
        page.accepted = dict(page.credited)
        page.inbox = page.inbox and Inbox(page.inbox.keep)
        self.commit(name)

    def hear_farewell(self, name, farewell):
        peer = self.peers[name]
        page = self.page(peer)
        if farewell.peer == peer.me:
            return
        owed = self.share(peer.me, farewell.peer, self.book[farewell.peer].credited.get(peer.me, 0), 2**63)
        if farewell.peer in page.closed:
            owed = 0
        assert peer.hear_farewell(farewell) == owed
        page.closed.add(farewell.peer)
        page.meets(farewell.peer)
        page.held += owed
        top = self.book[farewell.peer].credited.get(peer.me, 0)
        page.sent[farewell.peer] = {seq: a for seq, a in page.sent[farewell.peer].items() if seq <= top}

    def hand_over(self, name, heirs):
        peer = self.peers[name]
        page = self.page(peer)
        contacts = [self.peers[r].contact for r in heirs]
        before = peer.sequence
        envelopes = peer.hand_over(contacts, payload=f"{name}'s last model")
        takes = [
            c.peer not in page.closed and not page.is_over(c.peer) and self.room(page, c.peer) > 0 for c in contacts
        ]
        heirs = [contact.peer for contact, yes in zip(contacts, takes, strict=True) if yes][: page.held]
        given = dict.fromkeys(heirs, page.held // len(heirs)) if heirs else {}
        odd = page.held % len(heirs) if heirs else 0
        for env in sorted(envelopes, key=lambda env: env.sequence):
            wanted = (
                odd if odd and env.sequence == before + 1 and env.receiver == heirs[0] else given.pop(env.receiver, 0)
            )
            added = min(wanted, max(self.room(page, env.receiver), 0))
            page.sent[env.receiver].setdefault(env.sequence, added)
            page.held -= added
        assert page.held == peer.held
        assert not page.held or self.most is not None or not heirs
        for heir in heirs:
            page.meets(heir)
        assert all(
            env.total == sum(a for q, a in page.sent[env.receiver].items() if q <= env.sequence) for env in envelopes
        )
        self.commit(name)
        self.flying += envelopes

    def retire(self, name, back=False):
        """Let a peer that has left exit, and come back in a later epoch; its books stay readable."""
        peer = self.peers.pop(name)
        assert peer.gone
        self.left.append(peer.save())
        del self.disk[name]
        self.destroyed_by_the_gone += sum(peer.destroyed.values())
        if back:
            self.come_back(peer)

    def come_back(self, peer):
        epoch = epoch_of(peer.me)
        while peer_id(name_of(peer.me), epoch) in self.book:
            epoch += 1
        fresh = peer.renewed(epoch)
        self.add(fresh)
        self.page(fresh).closed |= self.page(peer).closed
        self.page(fresh).epochs = dict(fresh.past)
        for who in self.page(fresh).closed:
            self.page(fresh).meets(who)
        self.commit(name_of(peer.me))

    def forget(self, name, told):
        """Declare a peer gone for ever. `told` are the names that hear of it now."""
        who = self.lose(name)
        self.forgotten[who] = self.lost.pop(who)
        for other in told:
            self.hear_forgotten(other, who)

    def lose(self, name):
        """End a peer, with all that it knew."""
        peer = self.peers.pop(name)
        self.lost[peer.me] = peer.founded
        self.destroyed_by_the_gone += sum(peer.destroyed.values())
        del self.disk[name]
        return peer.me

    def hear_forgotten(self, name, who):
        self.peers[name].forget(who, self.forgotten[who])
        self.page(self.peers[name]).closed.add(who)
        self.page(self.peers[name]).meets(who)
        self.commit(name)

    def renew(self, name, forget=True):
        """Let a peer come back in a new epoch; the old one is forgotten, now or later."""
        peer = self.peers[name]
        if forget:
            self.forget(name, [other for other in self.peers if other != name])
        else:
            self.lose(name)
        self.come_back(peer)
        if forget:
            self.hear_forgotten(name, peer.me)

    def settle(self, rounds=30):
        """On a perfect network, let unsettled links be served, and nothing else: everything must come home."""
        self.flying.clear()
        self.forgotten |= self.lost
        self.lost.clear()
        for name in self.peers:
            if self.page(self.peers[name]).taken is not None:
                self.abort(name)
        for _ in range(rounds):
            for name, peer in list(self.peers.items()):
                for farewell in self.farewells:
                    self.hear_farewell(name, farewell)
                for who in self.forgotten:
                    self.hear_forgotten(name, who)
                for receiver in list(peer.sent):
                    if receiver in {other.me for other in self.peers.values()}:
                        self.gossip(name, name_of(receiver))
                for env in self.serve(name):
                    self.deliver(env)
                self.flying.clear()
                if peer.status == "open":
                    self.begin(name)
                    for env in self.finish(name, []):
                        self.deliver(env)
                    self.flying.clear()
            self.check()

    def stranded(self):
        """What neither is held nor waits, among the living."""
        waiting = sum(sum(self.waits(peer, self.page(peer).accepted).values()) for peer in self.peers.values())
        return self.on_links() - waiting
