"""A little world of real clients on a network that loses, repeats and reorders, with a book of its own beside them.

The book has every share of mass that was sent and is not credited yet, with the model that it weighs: what the paper
calls the messages buffered or in transit. Shares come from the totals on real envelopes, models from real payloads.
"""

from dataclasses import dataclass
from random import Random

import torch
from torch import nn

from pushcen.client import Client
from pushcen.codec import decode
from pushcen.learning import CentroidUpdate, Learner, Task, TrainingOptions, Update
from pushcen.learning.pull import Pulls
from pushcen.methods import Place, PushCen
from pushcen.protocol import UNIT, Peer, audit
from tests.learning.tasks import digits_of, row


class Watch:
    """Notes the way of the weights through an event."""

    def start(self, model):
        self.model, self.path, self.gradients, self.whole = model, [], [], []
        self.merged = row(model)
        super().start(model)
        self.path = [row(model)]
        self.anchor = torch.full_like(self.merged, torch.nan)
        begin, layers = 0, {id(layer.parameter): layer for layer in getattr(self, "_pulls", Pulls()).layers}
        for p in model.parameters():
            if id(p) in layers and layers[id(p)].strength:
                self.anchor[begin : begin + p.numel()] = layers[id(p)].anchor.double().flatten()
            begin += p.numel()

    def before_step(self):
        self.gradients.append(torch.cat([p.grad.double().flatten() for p in self.model.parameters()]))
        super().before_step()
        self.whole.append(torch.cat([p.grad.double().flatten() for p in self.model.parameters()]))

    def after_step(self):
        super().after_step()
        self.path.append(row(self.model))


class WatchedCentroids(Watch, CentroidUpdate):
    pass


class WatchedDense(Watch, Update):
    pass


class WatchedLearner(Learner):
    """Tells what is folded."""

    folded = ()

    def fold(self, weight, part, payloads):
        self.folded = (*self.folded, (weight, payloads))
        super().fold(weight, part, payloads)


@dataclass
class Share:
    sequence: int
    mass: int
    payloads: dict
    model: torch.Tensor
    state: str = "flying"  # or lost; then waiting, perhaps folded, then taken


@dataclass
class Step:
    """One compute event, as the lemmas see it: models in float64, masses in units."""

    name: str
    own: float
    mass: float  # y_i^{t+1/3}
    merged: torch.Tensor  # w_i^{t+1/3}
    trained: torch.Tensor  # w_i^{t+2/3}
    error: torch.Tensor  # e_i^t
    shares: list
    before: torch.Tensor  # X_tot^t
    between: torch.Tensor  # X_tot^{t+1/3}
    after: torch.Tensor  # X_tot^{t+2/3}
    end: torch.Tensor  # X_tot^{t+1}
    outcome: object
    update: Watch


def mlp(seed):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 10))


class World:
    def __init__(self, clients=5, method=None, training=None, dense=False, seed=0, joiners=0, alike=True):
        self.method = method or PushCen(clusters=16, limit=3, receivers=2)
        self.training = training or TrainingOptions(batch=16, optimiser="sgd", lr=0.05)
        self.dense, self.alike = dense, alike
        self.rules = self.method.rules(Place("any"))
        self.rng = Random(seed)
        self.clients, self.book, self.sent = {}, {}, {}
        self.flying, self.renewed = [], torch.zeros(())
        self.renewals = 0
        for i in range(clients + joiners):
            make = Peer.found if i < clients else Peer.join
            self.clients[str(i)] = Client(make(str(i), self.rules), self.learner(i), Random(i))
        self.founded = clients * UNIT

    def learner(self, i):
        m = self.method
        update = (
            WatchedDense()
            if self.dense
            else WatchedCentroids(m.clusters, m.strength, m.scale, m.mask, m.profile, m.feedback)
        )
        task = Task(mlp(0 if self.alike else i), digits_of(i, len(self.clients)))
        return WatchedLearner(task, update, self.training, client=f"client {i}", seed=i)

    # what the book says
    def shares(self):
        return [share for link in self.book.values() for share in link]

    def mass(self):
        return sum(client.peer.held for client in self.clients.values()) + sum(share.mass for share in self.shares())

    def numerator(self, besides=None):
        """X_tot, without what the client `besides` holds and has taken."""
        total = torch.zeros_like(row(self.clients["0"].learner.model))
        for name, client in self.clients.items():
            if name != besides:
                total += client.peer.held / UNIT * row(client.learner.model)
        for (_, receiver), link in self.book.items():
            for share in link:
                if not (receiver == besides and share.state == "taken"):
                    total += share.mass / UNIT * share.model
        return total

    def reference(self):
        """The paper's w-bar."""
        return self.numerator() / (self.mass() / UNIT)

    def consensus_error(self):
        center = self.reference()
        return float(sum((row(c.learner.model) - center).square().sum() for c in self.clients.values())) / len(
            self.clients
        )

    # what happens
    def begin(self, name):
        client = self.clients[name]
        folded = sum(weight for weight, _ in client.learner.folded)
        work = client.begin()
        waiting = {}
        for (sender, receiver), link in self.book.items():
            for share in link if receiver == name else []:
                if share.state == "waiting":
                    key = (sender, 0 if self.method.newest_only else id(share.payloads))
                    waiting[key] = waiting.get(key, 0) + share.mass
                elif share.state == "folded":
                    folded -= share.mass
                if share.state in ("waiting", "folded"):
                    share.state += " taken"
        assert folded == 0, "what was folded weighs what was sent"
        assert sorted(w for w, _, _ in work.models) == sorted(mass for mass in waiting.values() if mass)
        for share in self.shares():
            share.state = "taken" if share.state.endswith(" taken") else share.state
        return work

    def event(self, name, receivers):
        """A whole compute event; envelopes are on their way after it."""
        client = self.clients[name]
        x = self.numerator()
        work = self.begin(name)
        client.learner.folded = ()
        taken = [s for (_, to), link in self.book.items() if to == name for s in link if s.state == "taken"]
        mass = client.peer.held + sum(share.mass for share in taken)
        outcome = client.learner.step(work, measure=True)
        rest, update = self.numerator(besides=name), client.learner.update
        trained, y = row(client.learner.model), mass / UNIT
        envelopes = client.finish([self.clients[r].peer.contact for r in receivers], outcome.payloads)
        for link in self.book.values():
            link[:] = [share for share in link if share.state != "taken" or share not in taken]
        sent = torch.cat([t.double().flatten() for t in decode(outcome.payloads[0]).values()])
        shares = [self.note(envelope, sent) for envelope in envelopes]
        self.flying += envelopes
        return Step(
            name,
            work.own / UNIT,
            y,
            update.merged,
            trained,
            sent - trained,
            shares,
            x,
            rest + y * update.merged,
            rest + y * trained,
            self.numerator(),
            outcome,
            update,
        )

    def note(self, envelope, model):
        link = (envelope.sender.partition("/")[0], envelope.receiver.partition("/")[0])
        added = envelope.total - self.sent.get(link, 0)
        self.sent[link] = envelope.total
        self.book.setdefault(link, []).append(Share(envelope.sequence, added, envelope.payload, model))
        return added

    def deliver(self, envelope, answer=True):
        """Let an envelope arrive. Mass that was lost before it, or is replaced by it, rides on its model now."""
        sender, receiver = envelope.sender.partition("/")[0], envelope.receiver.partition("/")[0]
        client, link = self.clients[receiver], self.book[sender, receiver]
        before, already = len(client.learner.folded), {id(s) for s in link if s.state != "flying"}
        model = next((s.model for s in link if s.sequence == envelope.sequence), None)
        news = client.receive(envelope)
        if news:
            for share in link:
                if share.sequence > envelope.sequence or share.state in ("folded", "taken"):
                    continue
                if id(share) in already and not self.method.newest_only:
                    continue
                self.renewed = self.renewed + share.mass / UNIT * (model - share.model)
                self.renewals += share.mass > 0 and share.payloads is not envelope.payload
                share.model, share.payloads, share.state = model, envelope.payload, "waiting"
        for _, payloads in client.learner.folded[before:]:
            for (_, to), other in self.book.items():
                for share in other if to == receiver else []:
                    if share.payloads is payloads and share.state == "waiting":
                        share.state = "folded"
        if answer:
            self.clients[sender].peer.arrived(envelope, client.peer.boot)
        return news

    def abort(self, name):
        """Undo a begin."""
        client = self.clients[name]
        before = len(client.learner.folded)
        client.abort()
        assert len(client.learner.folded) == before
        for (_, receiver), link in self.book.items():
            for share in link if receiver == name else []:
                if share.state == "taken":
                    folded = any(share.payloads is payloads for _, payloads in client.learner.folded)
                    share.state = "folded" if folded else "waiting"

    def audit(self):
        return audit([client.peer.save() for client in self.clients.values()])

    def others(self, name, count):
        return self.rng.sample([other for other in self.clients if other != name], count)
