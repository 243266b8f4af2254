"""Neighbour policies in the simulated world: what they know, when they know it, and what becomes of it."""

from collections import Counter

import pytest
import torch

from pushcen.errors import DivergenceError, OptionError, TaskError
from pushcen.learning import Learner, Model, Task, TrainingOptions, Update, Work
from pushcen.methods import Epidemic, PushCen, PushSum, Swift
from pushcen.protocol import UNIT, ByBandit
from pushcen.simulation import MeterOptions, NeighbourOptions, World, simulate_world
from pushcen.simulation.neighbours import Neighbourhood
from tests.simulation.worlds import run, task


@pytest.fixture
def pushes(monkeypatch):
    """Who has pushed to whom, in order."""
    seen, choose = [], Neighbourhood.choose

    def noted(self, name, peer, now):
        chosen = choose(self, name, peer, now)
        seen.append((name, [contact.peer.partition("/")[0] for contact in chosen[0]]))
        return chosen

    monkeypatch.setattr(Neighbourhood, "choose", noted)
    return seen


def labelled(client, clients):
    """A client has one label alone, its number modulo 4, and one sample of the next."""
    inputs = torch.randn(32, 6, generator=torch.Generator().manual_seed(client))
    targets = torch.full((32,), client % 4)
    targets[0] = (client + 1) % 4
    return Task(torch.nn.Linear(6, 4), (inputs, targets), (inputs, targets))


def test_who_has_other_labels_is_pushed_to_more_often(pushes):
    run(function=labelled, horizon=8.0, method=PushSum(receivers=2), neighbours=NeighbourOptions(policy="priority"))
    alike, near, far = Counter(), Counter(), Counter()
    for name, chosen in pushes:
        for other in chosen:
            apart = min((int(name) - int(other)) % 4, (int(other) - int(name)) % 4)
            (alike, near, far)[apart][name, other] += 1
    assert len(alike) == 8  # nobody is left out
    assert max(alike.values()) < min(near.values()) + 1 <= min(far.values()) + 1
    assert sum(alike.values()) / 8 < sum(near.values()) / 32 < sum(far.values()) / 16


@pytest.mark.parametrize("targets", [torch.randn(32), torch.zeros(32, 2).long()])
def test_data_without_labels_have_no_priority(targets):
    def unlabelled(client, clients):
        inputs = torch.randn(32, 2)
        return Task(torch.nn.Linear(2, 1), (inputs, targets), loss=lambda outputs, _: outputs.square().mean())

    with pytest.raises(
        OptionError, match=r"neighbours.policy = 'priority': the training data of client 0 has no labels"
    ):
        run(function=unlabelled, neighbours=NeighbourOptions(policy="priority"))


def test_the_gain_is_what_part_of_the_loss_on_held_out_samples_merging_took_away():
    def learner(seed, **options):
        torch.manual_seed(seed)
        return Learner(task(seed, 4), Update(), TrainingOptions(batch=16), client="c", seed=seed, **options)

    one, other = learner(1, validation=0.25), learner(2)
    inputs, targets = task(1, 4).train
    kept = {tuple(row) for row in one.task.train[0].tolist()}
    held = [at for at, row in enumerate(inputs.tolist()) if tuple(row) not in kept]
    assert len(held) == round(0.25 * len(inputs))
    assert len(kept) == len(inputs) - len(held)
    payloads = other.step(Work(UNIT, [])).payloads
    loss = lambda model: torch.nn.functional.cross_entropy(model(inputs[held]), targets[held]).item()  # noqa: E731
    before, mean = loss(one.model), torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with torch.no_grad():
        for into, mine, theirs in zip(mean.parameters(), one.model.parameters(), other.model.parameters(), strict=True):
            into.copy_((3 * mine + theirs) / 4)
    gain = one.step(Work(3 * UNIT, [Model(UNIT, 0, payloads)], senders=["2"])).gain
    assert gain == pytest.approx((before - loss(mean)) / max(before, loss(mean)), abs=1e-5)
    assert one.step(Work(UNIT, [])).gain is None
    assert other.step(Work(UNIT, [Model(UNIT, 0, payloads)])).gain is None
    with pytest.raises(TaskError, match="it needs two at least, where one is held out for validation"):
        Learner(Task(torch.nn.Linear(2, 2), (torch.zeros(1, 2), torch.zeros(1).long())), validation=0.5)


def test_a_push_knows_the_gains_of_all_events_before_and_of_no_other(monkeypatch):
    """Recomputed from the outcomes in the order in which they were asked for."""
    from pushcen.simulation.evaluation import Evaluator

    outcomes, known = {}, []
    collected, stepped, pick = Evaluator._collected, Evaluator.stepped, ByBandit.pick

    def noted(self, facts, context):
        collected(self, facts, context)
        outcomes.setdefault(context[0], []).append(facts[0].gain)

    def began(self, node, work, envelopes, ticket):
        stepped(self, node, work, envelopes, ticket)
        known.append(("merged", node.name, tuple(work.senders)))

    def picked(self, me, others, k):
        known.append(("picked", me, {other: self.expected(me, other) for other in map(str, range(8))}))
        return pick(self, me, others, k)

    monkeypatch.setattr(Evaluator, "_collected", noted)
    monkeypatch.setattr(Evaluator, "stepped", began)
    monkeypatch.setattr(ByBandit, "pick", picked)
    run(neighbours=NeighbourOptions(policy="bandit"), horizon=4.0, workers=3)
    merged, checked = {}, 0
    for what, me, facts in known:
        if what == "merged":
            merged.setdefault(me, []).append(facts)
            continue
        gains = {}
        for senders, gain in zip(merged.get(me, []), outcomes[me], strict=False):
            for sender in set(senders) if gain is not None else ():
                gains.setdefault(sender, []).append(gain)
        for other, found in facts.items():
            mean = 0.0
            for count, gain in enumerate(gains.get(other, []), 1):
                mean += (gain - mean) / min(count, 8)
            assert found == pytest.approx(mean, abs=1e-12)
            checked += bool(mean)
    assert checked > 100


def poisoned(client, clients):
    plain = task(client, clients)
    if client < 2:
        plain.train = plain.train[0], 1 - plain.train[1]
    return plain


def test_whose_models_harm_is_seldom_pushed_to(pushes):
    method, training = Epidemic(receivers=2), TrainingOptions(batch=8, lr=0.05)
    bandit = NeighbourOptions(policy="bandit", explore=0.1, validation=0.3)
    run(function=poisoned, method=method, training=training, horizon=10.0, neighbours=bandit)
    later = [other for name, chosen in pushes[len(pushes) // 2 :] if int(name) >= 2 for other in chosen]
    assert later.count("0") + later.count("1") < 0.5 * (2 / 7) * len(later)


def test_mass_is_kept_to_the_quantum_whoever_is_picked():
    for policy in ("priority", "bandit"):
        for options in ({}, {"kind": "view", "size": 4, "bound": 5}, {"kind": "graph", "degree": 4}):
            summary = run(horizon=3.0, neighbours=NeighbourOptions(policy=policy, **options))
            assert summary["meters"]["mass"]["exact"]


def test_a_method_that_pushes_to_everybody_has_nobody_to_pick():
    for method, options in ((Swift(), {"kind": "graph"}), (PushCen(receivers=0), {})):
        with pytest.raises(OptionError, match=r"neighbours.policy = 'bandit': \S+ pushes to all its neighbours"):
            run(method=method, neighbours=NeighbourOptions(policy="bandit", **options))
    for option in ({"policy": "best"}, {"by_data": 2}, {"explore": -0.1}, {"validation": 1.0}, {"validation": 0}):
        with pytest.raises(OptionError, match=f"{next(iter(option))} = "):
            NeighbourOptions(**option)


def test_a_client_that_diverges_is_told_of_as_without_a_policy():
    def bad(client, clients):
        made = task(client, clients)
        if client == 3:
            made.train = made.train[0] * torch.nan, made.train[1]
        return made

    for workers in (1, 4):
        with pytest.raises(DivergenceError, match=r"client 3, event 1"):
            run(function=bad, strict=True, workers=workers, neighbours=NeighbourOptions(policy="bandit"))
    summary = run(function=bad, neighbours=NeighbourOptions(policy="bandit"), horizon=3.0)
    assert summary["failures"]["clients"]["3"]["events"] > 0


def test_with_one_client_there_is_nobody_to_pick():
    for policy in ("priority", "bandit"):
        made = World(
            PushCen(clusters=4),
            clients=1,
            horizon=2.0,
            neighbours=NeighbourOptions(policy=policy),
            meters=MeterOptions(()),
        )
        assert simulate_world(made, task)["traffic"]["messages_sent"] == 0
