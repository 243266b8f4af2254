"""References that move in the simulated world: they spread, they disagree, and what they cost is counted."""

import pytest
import torch

from pushcen.codec import payload_size, read_reference
from pushcen.learning import OFFER, OFFERED
from pushcen.methods import PushCenLean
from pushcen.references import HOLDS, ReferenceName
from pushcen.simulation import ComputeOptions, NetworkOptions, ParticipationOptions
from pushcen.simulation.engine import Engine
from pushcen.simulation.executors import Host, MakeLearner
from pushcen.simulation.executors.threads import Threads
from pushcen.simulation.jobs import Build, Encode
from tests.simulation.worlds import run, task, world

METHOD = PushCenLean(bits=1, renew_after=48, receivers=3)


def engine_of(**options):
    made = world(**{"method": METHOD, "clients": 8, **options})
    make = MakeLearner(task, made.method, made.training, made.clients, made.seed)
    executor = Threads(Host(make), 1)
    facts = [executor.wait(executor.submit(client, [Build()])) for client in range(made.clients)]
    engine = Engine(made, executor, facts, executor.submit(0, [Encode()]))
    engine.plan()
    return engine


def go(engine, upto=None):
    while not engine.over and (upto is None or engine.steps < upto):
        engine.act()


def test_references_move_and_everybody_has_the_newest_or_the_one_before():
    engine = engine_of(horizon=12.0)
    go(engine)
    newest = {node.references.newest.generation for node in engine.nodes}
    assert min(newest) >= 3
    assert max(newest) - min(newest) <= 1
    assert all(len(node.references.held) <= HOLDS for node in engine.nodes)


def test_a_reference_is_the_same_numbers_for_everybody_who_holds_it():
    engine = engine_of(horizon=12.0)
    go(engine)
    found = {}
    for node in engine.nodes:
        for name, ticket in node.references.held.items():
            reference = read_reference(engine.executor.product(ticket)[OFFER])
            assert found.setdefault(name, reference) is reference
    assert len({reference.fingerprint for reference in found.values()}) == len(found)


def test_the_bytes_of_references_are_counted_one_message_for_each_client_that_lacked_it():
    engine = engine_of(horizon=6.0)
    go(engine)
    size = payload_size(engine.nodes[0].facts.schema, OFFERED)
    assert engine.nodes[0].facts.reference_size == size
    spent = sum(node.reference_bytes for node in engine.nodes)
    sent = sum(node.bytes_sent for node in engine.nodes)
    messages = sum(node.messages_sent for node in engine.nodes)
    assert spent > 0
    assert spent % size == 0
    assert sent == spent + messages * engine.nodes[0].facts.sizes[0]
    summary = run(method=METHOD, horizon=6.0)
    assert summary["traffic"]["reference_bytes"] > 0


def test_a_late_joiner_has_the_newest_with_its_first_message():
    people = ParticipationOptions(delayed=0.25, earliest=4, latest=5)
    engine = engine_of(horizon=12.0, participation=people)
    late = [node for node in engine.nodes if node.late]
    while not engine.over and not all(node.peer.waiting or node.events for node in late):
        engine.act()
        for node in late:
            if node.peer.waiting:
                assert node.references.newest is not None
    assert all(node.present for node in late)


def test_messages_are_differences_to_what_their_receivers_hold():
    """Whoever has a message in its mailbox can read it: its base is one that came along, or the common start."""
    engine = engine_of(horizon=10.0)
    seen = 0
    while not engine.over:
        engine.act()
        for node in engine.nodes:
            for _, envelope in node.peer.peek():
                payload = engine.executor.product(envelope.payload)[0]
                assert payload.base is not None
                seen += any(payload.reference == read_reference(engine.executor.product(t)[OFFER]).fingerprint
                            for t in node.references.held.values())  # fmt: skip
    assert seen > 100


@pytest.mark.parametrize("loss", [0.3, 0.6])
def test_what_cannot_be_read_is_refused_and_comes_again(loss):
    """Half the references are lost on their way: no mass is, and training goes on."""
    summary = run(
        method=METHOD, horizon=15.0, network=NetworkOptions(loss=loss, latency=0.2, jitter=0.3, notice="doubt")
    )
    assert summary["meters"]["mass"]["exact"]
    assert summary["final"]["accuracy"] > 0.7


def test_nobody_takes_in_what_it_cannot_read():
    """Where a reference is lost on its way, the message that builds upon it is refused, though all is at hand here."""
    network = NetworkOptions(loss=0.3, latency=0.2, jitter=0.3, notice="doubt")
    engine, read, to_own = engine_of(horizon=10.0, network=network), 0, 0
    start = set(engine.executor._host.learners[0].update.references)

    def checked(node, receive):
        def take(envelope):
            nonlocal read, to_own
            payloads = engine.executor.product(envelope.payload)
            held = [read_reference(engine.executor.product(ticket)[OFFER]) for ticket in node.references.held.values()]
            assert payloads[0].reference in start | {reference.fingerprint for reference in held}
            read += payloads[0].reference not in start
            to_own += OFFER in payloads and payloads[0].reference == read_reference(payloads[OFFER]).fingerprint
            return receive(envelope)

        return take

    for node in engine.nodes:
        node.client.receive = checked(node, node.client.receive)
    go(engine)
    assert read > 100
    assert to_own > 0


def test_two_of_one_generation_may_live_and_a_push_takes_what_both_have():
    engine = engine_of(horizon=30.0)
    go(engine, upto=120)
    one, other = engine.nodes[0], engine.nodes[1]
    common = set(one.references.held) & set(other.references.held)
    handle = next(iter(one.references.held.values()))
    generation = max(one.references.newest, other.references.newest).generation + 1
    one.references.hold(ReferenceName(generation, "a"), handle)
    other.references.hold(ReferenceName(generation, "b"), handle)
    from pushcen.simulation.offers import Push

    one.references._wait = 100  # it offers nothing now
    work = one.client.begin()
    assert one.references.newest < other.references.newest
    push = Push.plan(engine, one, [other.peer.contact])
    assert {name for name, _ in push.towards} == common & set(one.references.held) & set(other.references.held)
    assert push.of(work).towards == [ticket for _, ticket in push.towards]


@pytest.mark.parametrize("spread", [0, 4])
def test_without_training_or_loss_mass_times_model_and_what_was_left_out_add_up_to_the_same(spread):
    """Residuals are kept in units of mass: what one push leaves out, with its mass, the next one makes up for."""
    from pushcen.learning import TrainingOptions

    engine = engine_of(
        method=PushCenLean(bits=1, renew_after=60, receivers=2, newest_only=False, limit=64, spread=spread),
        training=TrainingOptions(batch=16, lr=1e-30),
        compute=ComputeOptions("constant"),
        horizon=12.0,
    )
    draw = torch.Generator().manual_seed(1)
    for learner in engine.executor._host.learners.values():  # they start apart
        for tensor in learner.schema.tensors(learner.model):
            tensor.data.add_(torch.randn(tensor.shape, generator=draw))
    before = _sum(engine)
    go(engine)
    assert engine.steps > 60
    after = _sum(engine)
    torch.testing.assert_close(after, before, rtol=0, atol=2e-4 * len(engine.nodes))


def _sum(engine):
    """Add up mass times model over everything that has mass, and what senders have left out, in units of mass."""
    from pushcen.simulation.reference import reference

    mass = sum(node.peer.founded for node in engine.nodes)
    total = engine.executor.product(reference(engine)) * 8
    for learner in engine.executor._host.learners.values():
        residual = learner.update.residual
        if residual.row is not None:
            total = total + 8 * residual.row.double() * (residual.mass / mass)
    return total
