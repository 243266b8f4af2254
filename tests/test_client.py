"""A client: a peer and a learner that go through each event together, one save, one restore."""

import json
from random import Random

import pytest
import torch

from pushcen.client import Client
from pushcen.codec import Payload
from pushcen.learning import Learner, State, Task, TrainingOptions
from pushcen.methods import Place, method_named
from pushcen.protocol import UNIT, Peer, from_bytes, name_of, to_bytes
from pushcen.protocol.graphs import star
from tests.learning.tasks import tiny_data, tiny_model
from tests.learning.test_save import same

METHODS = {
    "pushcen": {"clusters": 8, "limit": 2},
    "push-sum": {"limit": 2, "full_after": 0},
    "async-dfedavg": {"limit": 2, "mass": "keep"},
    "swift": {},
    "swift-random": {},
    "divshare": {"parts": 3, "receivers": 1},
    "independent": {},
    "epidemic": {"receivers": 2},
    "sgp": {"limit": 2, "receivers": 2},
    "rasgp": {},
    "ad-psgd": {},
}
NAMES = ["a", "b", "c", "d"]
TRAINING = TrainingOptions(batch=8, lr=0.01)


def learner(method, name):
    number = NAMES.index(name)
    return Learner(Task(tiny_model(), tiny_data(number)), method.update(), TRAINING, client=name, seed=number)


def rules_of(method, name):
    return method.rules(Place(name, star(NAMES), learner(method, name).encode()))


def client(name, kind):
    method = method_named(kind)(**METHODS[kind])
    return Client(Peer.found(name, rules_of(method, name)), learner(method, name), Random(name))


def push(sender, everybody):
    """A whole event of one client; give the envelopes, which nobody has got yet."""
    outcome = sender.step(sender.begin())
    others = [name for name in everybody if name != name_of(sender.peer.me)]
    chosen = sender.peer.rules.outbox.choose(lambda k: sender.rng.sample(others, min(k or 9, len(others))))
    parts = [part for _, part in chosen] if any(part for _, part in chosen) else ()
    return sender.finish([everybody[name].peer.contact for name, _ in chosen], outcome.payloads, parts)


def everybody_of(kind):
    return {name: client(name, kind) for name in NAMES}


def deliver(everybody, envelopes):
    for envelope in envelopes:
        everybody[name_of(envelope.receiver)].receive(envelope)


def committed(one):
    """What a commit holds after it went through a file: plain data as JSON, tensors copied."""
    state = one.save()
    return State({name: t.clone() for name, t in state.tensors.items()}, json.loads(json.dumps(state.plain)))


@pytest.mark.parametrize("kind", METHODS)
def test_a_restored_client_goes_on_bit_for_bit(kind):
    everybody = everybody_of(kind)
    for name in ("b", "c", "d", "a", "b"):
        deliver(everybody, push(everybody[name], everybody))
    one = everybody["a"]
    push(one, everybody)
    state = committed(one)
    method = method_named(kind)(**METHODS[kind])
    again = Client.restore(state, learner(method, "a"), rules_of(method, "a"))
    assert again.rng.getstate() == one.rng.getstate()
    assert again.peer.boot == one.peer.boot + 1
    if kind.startswith("swift"):  # what stands is not committed: it comes again with the neighbours' next pushes
        again.peer._mailbox.restore(one.peer._mailbox.save())
    news = [envelope for name in ("b", "c", "d") for envelope in push(everybody[name], everybody)]
    for two in (one, again):
        for envelope in news:
            if envelope.receiver == one.peer.me:
                two.receive(envelope)
    first, second = push(one, everybody), push(again, everybody)
    assert [(e.receiver, e.part, e.sequence, e.total) for e in first] == [
        (e.receiver, e.part, e.sequence, e.total) for e in second
    ]
    for mine, other in zip(first, second, strict=True):
        assert mine.payload[mine.part].data == other.payload[other.part].data
    same(one.learner.save(), again.learner.save())


@pytest.mark.parametrize("kind", ["pushcen", "push-sum", "async-dfedavg", "divshare"])
def test_abort_is_as_if_begin_had_not_been(kind):
    everybody = everybody_of(kind)
    one = everybody["a"]
    for name in ("b", "c", "d", "b"):
        for envelope in push(everybody[name], everybody):
            if envelope.receiver == one.peer.me:
                one.receive(envelope)
    peer, state = one.peer.snapshot(), one.learner.save()
    one.begin()
    one.abort()
    assert one.peer.snapshot() == peer
    same(one.learner.save(), state)


def test_what_came_while_an_event_ran_that_was_aborted_weighs_all_the_same():
    everybody = everybody_of("pushcen")
    one = everybody["a"]
    envelopes = {name: [] for name in ("b", "c", "d")}
    for name in ("b", "c", "d", "b", "d"):
        envelopes[name] += [e for e in push(everybody[name], everybody) if e.receiver == one.peer.me]
    sent = [envelope for mine in envelopes.values() for envelope in mine]
    one.begin()
    for envelope in sent[: len(sent) // 2]:
        one.receive(envelope)
    one.abort()
    one.begin()
    for envelope in sent[len(sent) // 2 :]:
        one.receive(envelope)
    one.abort()
    total = sum(mine[-1].total for mine in envelopes.values() if mine)
    work = one.begin()
    folded = one.learner._taken.weight if one.learner._taken else 0
    assert sum(weight for weight, _, _ in work.models) + folded == total
    assert one.learner.update._taken.weight == folded
    one.step(work)


def test_what_the_bound_evicts_is_folded_with_its_share():
    everybody = everybody_of("pushcen")
    one = everybody["a"]
    arrived = []
    for name in ("b", "c", "d"):
        arrived += [e for e in push(everybody[name], everybody) if e.receiver == one.peer.me]
    for envelope in arrived:
        assert one.receive(envelope)
    assert len(arrived) == 3
    assert len(one.begin().models) == 2
    assert one.learner._taken.weight == arrived[0].total


def test_a_repeat_is_no_news_and_changes_nothing():
    everybody = everybody_of("pushcen")
    [envelope] = [e for e in push(everybody["b"], everybody) if e.receiver == "a/1"]
    assert everybody["a"].receive(envelope)
    before, state = everybody["a"].peer.snapshot(), everybody["a"].learner.save()
    assert not everybody["a"].receive(envelope)
    assert everybody["a"].peer.snapshot() == before
    same(everybody["a"].learner.save(), state)


def test_a_commit_holds_no_fold_and_what_was_folded_comes_again():
    """Rule 2: after a restart a link's top is what was credited, so the sender's next envelope brings it all."""
    everybody = everybody_of("pushcen")
    one, other = everybody["a"], everybody["b"]
    one.step(one.begin())
    one.finish([], one.learner.encode())
    state = committed(one)
    total = 0
    for _ in range(3):
        [envelope] = [e for e in push(other, {name: everybody[name] for name in ("a", "b")}) if e.receiver == "a/1"]
        one.learner.fold(1, 0, envelope.payload)  # whatever was folded meanwhile
        total = envelope.total
    method = method_named("pushcen")(**METHODS["pushcen"])
    again = Client.restore(state, learner(method, "a"), rules_of(method, "a"))
    assert again.learner._open is None
    again.receive(envelope)
    assert [weight for weight, _, _ in again.begin().models] == [total]


def test_who_joins_late_adopts_what_it_first_gets_and_holds_it():
    everybody = everybody_of("pushcen")
    method = method_named("pushcen")(**METHODS["pushcen"])
    late = Client(Peer.join("a", rules_of(method, "a")), learner(method, "a"), Random(1))
    late.step(late.begin())
    assert late.finish([everybody["b"].peer.contact], late.learner.encode()) == []  # no mass: nothing to push
    [envelope] = [e for e in push(everybody["b"], everybody) if e.receiver == "a/1"]
    late.receive(envelope)
    work = late.begin()
    assert (work.own, work.adopts) == (0, True)
    late.step(work)
    assert sum(e.total for e in late.finish([everybody["c"].peer.contact], late.learner.encode())) + late.peer.held == (
        envelope.total
    )


@pytest.mark.parametrize("kind", ["pushcen", "divshare", "push-sum"])
def test_an_envelope_through_bytes_merges_to_the_same_weights(kind):
    """What a network does: bytes on the wire, and a mapping with the one part that came."""
    everybody, remote = everybody_of(kind), everybody_of(kind)
    for envelope in push(everybody["b"], everybody):
        if envelope.receiver != "a/1":
            continue
        everybody["a"].receive(envelope)
        data = to_bytes(envelope._replace(payload=envelope.payload[envelope.part].data))
        arrived = from_bytes(data)
        payload = Payload.parse(arrived.payload, remote["a"].learner.schema)
        remote["a"].receive(arrived._replace(payload={arrived.part: payload}))
    for one in (everybody["a"], remote["a"]):
        one.step(one.begin())
    for mine, other in zip(
        everybody["a"].learner.model.parameters(), remote["a"].learner.model.parameters(), strict=True
    ):
        assert torch.equal(mine, other)


def test_push_sum_on_two_clients_is_the_textbook():
    """One merge by hand: (1 * w_b + 1/2 * w_a) / (3/2)."""
    a, b = client("a", "push-sum"), client("b", "push-sum")
    outcome = a.step(a.begin())
    sent = {name: tensor.clone() for name, tensor in a.learner.model.state_dict().items()}
    own = {name: tensor.clone() for name, tensor in b.learner.model.state_dict().items()}
    [envelope] = a.finish([b.peer.contact], outcome.payloads)
    b.receive(envelope)
    work = b.begin()
    assert (work.own, [m.weight for m in work.models]) == (UNIT, [UNIT // 2])
    b.learner._merge(work)
    for name, tensor in b.learner.model.state_dict().items():
        torch.testing.assert_close(tensor, (own[name] + sent[name] / 2) / 1.5, rtol=0, atol=1e-6)


def test_a_client_tells_how_long_it_trained():
    """With full_after = 5, two steps give two fifths of an even split away."""
    a, b = client("a", "pushcen"), client("b", "pushcen")
    assert a.learner.steps == 2
    outcome = a.step(a.begin())
    [envelope] = a.finish([b.peer.contact], outcome.payloads)
    assert envelope.total == UNIT // 2 * 2 // 5
    assert a.peer.held == UNIT - envelope.total
