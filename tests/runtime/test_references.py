"""References that move among real peers: signed, durable, brought where they are lacking; hostile ones do no harm."""

import asyncio
import contextlib
import gc
import json
import shutil
import threading
import weakref

import grpc
import pytest
import torch

from pushcen.codec import Dense, Lean, Payload, Reference, encode, read_reference
from pushcen.errors import DiskError, LedgerError, PayloadError
from pushcen.learning import OFFERED
from pushcen.methods import PushCenLean
from pushcen.protocol import UNIT, Envelope, epoch_of
from pushcen.references import HOLDS, ReferenceName
from pushcen.runtime.offers import Offer
from pushcen.runtime.operator import deliver
from pushcen.runtime.references import AHEAD
from pushcen.runtime.security.identity import Certified
from pushcen.runtime.state_folder import read_state
from pushcen.runtime.wire import Hello, Holding, Signed
from pushcen.runtime.wire.pieces import read_piece, write_piece

from .liar import liar
from .tasks import tiny
from .test_hostile import piece, pieces, state_of, victim, world_hello
from .world import LIMIT, World, run, until

QUICK = PushCenLean(renew_after=4)
STILL = PushCenLean(renew_after=0)


def newest(node):
    """The newest generation that a peer holds."""
    return max((name.generation for name in node.offers.names.held), default=0)


def named(node):
    """What a peer says that it holds."""
    return {ReferenceName(one.generation, one.owner): one.fingerprint for one in node.offers.said()}


def count(node, reason):
    return node.metrics.refusals.labels(reason)._value.get()


async def train(world, *names, events=None, **options):
    return await world.start(*names, events=events, method=QUICK, **options)


def test_references_move_and_everybody_keeps_up(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.05)
        nodes = await train(world, *world.names, events=30, settings={"start_with": 2})
        await until(lambda: all(world.events(name) == 30 for name in world.names))
        await until(lambda: min(map(newest, nodes)) >= max(map(newest, nodes)) - 1)
        assert max(map(newest, nodes)) >= 3
        for node in nodes:
            assert node.metrics.received.labels("news")._value.get() > 0
            assert count(node, "payload") + count(node, "malformed") + count(node, "record") == 0
            assert node.metrics.failed_events._value.get() == 0
            assert len(named(node)) <= HOLDS
        found = await world.check()
        assert found.held + found.on_links == 3 * UNIT

    run(story())


def test_who_joins_late_is_brought_what_its_first_model_is_the_difference_to(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1", "late"), founders=("p0", "p1"), pause=0.05)
        await train(world, "p0", "p1")
        await until(lambda: newest(world.node("p0")) >= 3)
        [late] = await train(world, "late", join=[world.addresses["p0"]])
        await until(lambda: late.peer.held > 0)
        assert late.metrics.references.labels("in")._value.get() > 0
        await until(lambda: newest(late) >= newest(world.node("p0")) - 1)
        await world.check()

    run(story())


def test_a_restarted_peer_still_holds_its_references(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1"), pause=0.02)
        await train(world, "p0", "p1")
        await until(lambda: newest(world.node("p0")) >= 2 * HOLDS)  # some were dropped, and their files are gone
        await world.stop()
        kept = read_state(world.state("p0"))["references"]
        assert 0 < len(kept["held"]) <= HOLDS
        [node] = await train(world, "p0", live=False, join=[])
        assert [list(name) for name in named(node)] == [row[:2] for row in kept["held"]]
        for held in node.offers.held:  # and has their numbers, by which they are named
            assert read_reference(Payload.parse(held.payload.data, node.learner.schema)).fingerprint == (
                held.offer.fingerprint
            )
        files = {path.name for path in world.state("p0").glob("reference-*")}
        assert files == {row[2]["file"][0] for row in kept["held"]}
        await world.stop()

    run(story())


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_a_damaged_reference_is_told_and_nothing_is_overwritten(tmp_path, damage):
    async def story():
        world = World(tmp_path, names=("p0", "p1"), pause=0.02)
        await train(world, "p0", "p1")
        await until(lambda: named(world.node("p0")))
        await world.stop()
        path = world.state("p0") / read_state(world.state("p0"))["references"]["held"][0][2]["file"][0]
        path.unlink() if damage == "missing" else path.write_bytes(path.read_bytes()[:-1] + b"?")
        with pytest.raises(LedgerError, match=r"reference-\d+.payload: is missing or not what was committed"):
            await train(world, "p0")

    run(story())


def test_who_goes_on_from_an_old_backup_takes_part_again_and_its_references_do(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.02)
        await train(world, *world.names)
        await until(lambda: newest(world.node("p0")) >= 2)
        await world.stop("p0")
        shutil.copytree(world.state("p0"), tmp_path / "backup")
        await train(world, "p0")
        await until(lambda: newest(world.node("p0")) >= 5)
        await world.stop("p0")
        shutil.rmtree(world.state("p0"))
        shutil.copytree(tmp_path / "backup", world.state("p0"))
        [node] = await train(world, "p0")
        await until(lambda: epoch_of(node.peer.me) > 1 and node.peer.held > 0)
        await until(lambda: newest(node) >= newest(world.node("p1")) - 1 > 5)
        await deliver(world.authority, world.authority.forget("p0/1"), world.addresses["p1"])
        await until(lambda: all("p0/1" in world.node(name).peer.forgotten for name in world.names))
        assert (await world.check()).missing == {}

    run(story())


def test_references_survive_a_new_generation_of_the_network(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.02)
        nodes = await train(world, *world.names)
        await until(lambda: min(map(newest, nodes)) >= 2)
        before = newest(nodes[0])
        await deliver(world.authority, world.authority.refound(["p0", "p1", "p2"]), world.addresses["p0"])
        await until(lambda: all(node.generation.number == 1 and not node.stale for node in nodes))
        await until(lambda: min(map(newest, nodes)) > before + 1)
        await world.check()

    run(story())


def test_who_leaves_hands_everything_over_as_a_difference_that_its_heirs_know(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.02)
        nodes = await train(world, *world.names)
        await until(lambda: min(map(newest, nodes)) >= 2)
        world.node("p2").leaving.set()
        async with asyncio.timeout(LIMIT):
            await world.lives["p2"]
        assert world.node("p2").peer.gone
        assert (await world.check()).written_off == 0

    run(story())


@pytest.mark.parametrize("refusal", ["busy", "reference"])
def test_where_a_reference_cannot_be_brought_no_byte_of_the_push_leaves(tmp_path, refusal):
    """Then its mass is back; and who will not have a reference is sent what it is sure to understand."""
    pushed = []

    async def story():
        world = World(tmp_path, names=("p0", "eve"), pause=0.02)
        [node] = await train(world, "p0", join=[], live=False)

        def say(**more):
            return Hello(major=1, minor=3, peer="eve/1", boot=1, run=node.setup, **more)

        def push():
            pushed.append(node.offers.names.used)
            return say()

        async with liar(world, "eve", say, push=push, reference=lambda: say(refusal=refusal, text="no")):
            node.members.meet("eve", world.addresses["eve"], 0.0)
            world.lives["p0"] = asyncio.create_task(node.run())
            failed = node.metrics.pushes.labels("failed")._value
            await until(lambda: node.offers.names.held and failed.get() > (2 if refusal == "busy" else 0))
            sent = node.peer.sent["eve/1"]
            assert node.peer.held + sent == UNIT
            events, count = node.peer.events, len(pushed)
            await until(lambda: node.peer.events > events + 3)
            if refusal == "busy":  # each push was to a reference, and none of them left
                assert len(pushed) == count
            else:
                await until(lambda: len(pushed) > count and pushed[-1] is None)
            assert not world.lives["p0"].done()
            await world.stop()

    run(story())


def test_a_push_goes_to_who_holds_its_reference_though_the_sender_has_dropped_it_since(tmp_path):
    """While an event trains, newer references may come, and that which the push is the difference to may go."""
    pushed = []

    async def story():
        world = World(tmp_path, names=("p0", "eve"))
        [node] = await train(world, "p0", join=[], live=False)
        with torch.no_grad():  # it is far from the start by now
            for tensor in node.learner.model.parameters():
                tensor.add_(1.0)
        payload = encode(node.learner.model, OFFERED)
        held = await node._written(node.offers, node.offers.sign(ReferenceName(1, "p0"), payload), payload)
        node.offers.hold(held)
        await node.commit()
        holding, step = node.offers.said(), node.learner.step

        def say(**more):
            return Hello(major=1, minor=3, peer="eve/1", boot=1, run=node.setup, holds=holding, **more)

        def newer_come(work):
            outcome = step(work)
            assert outcome.payloads[0].reference == held.offer.fingerprint
            node.offers.names.held.clear()
            return outcome

        async with liar(world, "eve", say, push=lambda: pushed.append(1) or say(news=True)):
            node.members.meet("eve", world.addresses["eve"], 0.0)
            await node.channels.ask("eve")
            node.learner.step = newer_come
            await node.trainer.event()
            await node.channels.drain(LIMIT)
            failed = node.metrics.pushes.labels("failed")._value.get()
            await world.stop()
        assert (len(pushed), failed) == (1, 0)

    run(story())


# One peer that only listens, and a member that may say anything


def model(client=7, scale=1.0):
    made = tiny(client, 8).model
    with torch.no_grad():
        for tensor in made.parameters():
            tensor.mul_(scale)
    return made


def offer(world, payload, generation=1, signer="eve", **wrong):
    """A reference as the wire has it, in one piece; `wrong` are fields of the offer."""
    try:
        fingerprint = read_reference(payload).fingerprint.hex()
    except Exception:
        fingerprint = "00" * 16
    fields = {"kind": "reference", "owner": signer, "generation": generation, "fingerprint": fingerprint}
    signed = Certified(world.certs(signer)).sign({**fields, **wrong})
    return write_piece(b"", payload.data, signed.SerializeToString())


def everything(node):
    references = json.dumps(node.offers.save()), len(list(node.store.folder.glob("reference-*")))
    return state_of(node), references, json.dumps(read_state(node.store.folder)["references"])


def test_a_push_to_a_reference_that_is_not_there_is_refused_by_its_header_and_comes_later(tmp_path):
    async def story():
        async with victim(tmp_path, method=STILL) as (world, node, line, _):
            offered = encode(model(), OFFERED)
            data = encode(model(8), Lean(STILL.bits), reference=read_reference(offered)).data
            envelope = Envelope("eve/1", "ann/1", 0, 5, UNIT // 2, None)
            before = everything(node)

            async def slow():
                yield piece(envelope, data[:60], len(data))
                await asyncio.sleep(LIMIT)  # the rest never comes: nobody waits for it

            answer = await line.push(slow(), LIMIT)
            assert (answer.refusal, answer.news, everything(node)) == ("reference", False, before)
            assert (await line.reference(pieces(offer(world, offered)), LIMIT)).refusal == ""
            assert list(named(node)) == [(1, "eve")]
            assert read_state(node.store.folder)["references"]["held"][0][:2] == [1, "eve"]  # durable before it is said
            answer = await line.push(pieces(piece(envelope, data)), LIMIT)
            assert (answer.news, node.peer.waiting) == (True, UNIT // 2)
            assert [(one.generation, one.owner) for one in answer.holds] == [(1, "eve")]
            for generation in range(2, 2 + HOLDS):  # it is dropped, and the message that waits keeps it
                more = encode(model(10 + generation), OFFERED)
                assert (await line.reference(pieces(offer(world, more, generation)), LIMIT)).refusal == ""
            assert ReferenceName(1, "eve") not in node.offers.names.held
            outcome = node.client.step(node.client.begin())
            assert outcome.steps > 0

    run(story())


def test_a_reference_that_is_not_right_is_refused_and_changes_nothing(tmp_path):
    async def story():
        async with victim(tmp_path, method=STILL) as (world, node, line, payload):
            world.authority.issue("bob")
            good = encode(model(), OFFERED)
            right = offer(world, good)
            changed, unsigned = bytearray(good.data), offer(world, good)
            changed[-1] ^= 1
            unsigned = unsigned.replace(b'"generation": 1,', b'"generation": 2,')
            signed = Certified(world.certs("eve")).sign({"kind": "reference"}).SerializeToString()
            start = Payload.parse(payload, node.learner.schema)
            cases = {
                "record": [
                    unsigned,
                    offer(world, good, signer="eve", owner="ann"),
                    offer(world, good, signer="bob", owner="eve"),
                    offer(world, good, kind="member"),
                    offer(world, good, generation=0),
                    offer(world, good, generation=2**62),
                    offer(world, good, generation="1"),
                    offer(world, good, fingerprint="00"),
                    write_piece(b"", good.data, signed),
                    write_piece(b"", good.data, Signed(body=b"{}").SerializeToString()),
                    write_piece(b"", good.data),
                    b"",
                ],
                "payload": [
                    offer(world, good, fingerprint="00" * 16),
                    write_piece(b"", bytes(changed), offer_of(right)),
                    offer(world, start),  # a difference, and too short
                    offer(world, encode(model(), Lean(4.0), reference=Reference.of(model(8)))),
                    write_piece(b"", bytes(len(good)), offer_of(right)),
                ],
                "oversized": [offer(world, encode(model(), Dense()))],
                "malformed": [
                    b"\xff" * 50,
                    write_piece(b"head", good.data, offer_of(right)),
                    write_piece(b"", good.data[:20], offer_of(right)),
                    write_piece(b"", good.data[:-1], offer_of(right)),
                    write_piece(b"", good.data + b"?", offer_of(right)),
                ],
                "reference": [offer(world, good, generation=2**61)],
            }
            before = everything(node)
            for reason, messages in cases.items():
                for i, message in enumerate(messages):
                    answer = await line.reference(pieces(message), LIMIT)
                    assert answer.refusal == reason, (reason, i, answer.refusal, answer.text)
                    assert everything(node) == before, (reason, i)
            assert {reason: count(node, reason) for reason in cases} == {key: len(some) for key, some in cases.items()}
            assert (await line.reference(pieces(right), LIMIT)).refusal == ""
            node.offers.names.served(ReferenceName(1, "eve"), [])
            before = everything(node)
            assert (await line.reference(pieces(right), LIMIT)).refusal == ""  # again: nothing is read
            other = await line.reference(pieces(offer(world, encode(model(8), OFFERED))), LIMIT)
            ahead = await line.reference(pieces(offer(world, good, generation=2 + AHEAD)), LIMIT)
            assert ("is another one here" in other.text, "too far ahead" in ahead.text) == (True, True)
            assert everything(node) == before

    run(story())


def test_a_reference_in_another_codec_is_none_though_its_numbers_are_as_signed(tmp_path):
    async def story():
        async with victim(tmp_path, method=STILL) as (_, node, _, _):
            dense = encode(model(), Dense())
            signed = Offer(ReferenceName(1, "eve"), read_reference(dense).fingerprint, Signed())
            with pytest.raises(PayloadError, match="must be Centroids"):
                node.offers.read(signed, dense.data)

    run(story())


def test_a_reference_is_neither_said_nor_used_before_it_is_durable(tmp_path):
    async def story():
        async with victim(tmp_path, method=STILL) as (world, node, line, _):
            free, commit = threading.Event(), node.store.commit

            def slow(*arguments):
                free.wait(LIMIT)
                commit(*arguments)

            node.store.commit = slow
            brought = asyncio.create_task(line.reference(pieces(offer(world, encode(model(), OFFERED))), LIMIT))
            try:
                await until(lambda: node.offers.held)
                assert not (await line.hello(world_hello(node, "eve/1"), LIMIT)).holds
                assert not node.offers.plan([]).candidates
                assert not brought.done()
            finally:
                free.set()
            assert len((await brought).holds) == len(node.offers.plan([]).candidates) == 1

    run(story())


def test_references_that_wait_for_a_full_disk_are_few_and_come_in_when_there_is_room(tmp_path):
    """Each call ends when its caller hangs up; what it brought must not pile up behind it."""

    async def story():
        async with victim(tmp_path, method=STILL) as (world, node, line, _):
            read, write, seen = node.offers.read, node.offers.files.write, []

            def noted(*arguments):
                payload = read(*arguments)
                seen.append(weakref.ref(payload))
                return payload

            def full(data):
                raise DiskError("no room")

            node.offers.read, node.offers.files.write = noted, full
            brought = {i: offer(world, encode(model(i), OFFERED), generation=i) for i in range(1, 8)}
            for message in (*brought.values(), *brought.values()):
                with contextlib.suppress(grpc.aio.AioRpcError):
                    await line.reference(pieces(message), 0.3)
            await asyncio.sleep(0.2)
            gc.collect()
            assert 0 < sum(one() is not None for one in seen) <= HOLDS
            assert not node.offers.held
            node.offers.files.write = write
            await until(lambda: len(named(node)) == HOLDS)
            check_files(node)

    run(story())


def check_files(node):
    """Every file is one that the ledger names."""
    files = {path.name for path in node.store.folder.glob("reference-*")}
    assert files == {row[2]["file"][0] for row in read_state(node.store.folder)["references"]["held"]}


def test_a_reference_that_goes_before_it_was_ever_committed_leaves_no_file(tmp_path):
    async def story():
        async with victim(tmp_path, method=STILL) as (_, node, _, _):
            for generation in range(1, HOLDS + 3):
                payload = encode(model(generation), OFFERED)
                signed = node.offers.sign(ReferenceName(generation, "ann"), payload)
                assert node.offers.hold(await node._written(node.offers, signed, payload))
            await node.commit()
            check_files(node)

    run(story())


def offer_of(message):
    return read_piece(message)[1]


def test_who_is_revoked_offers_nothing_though_others_pass_it_on(tmp_path):
    async def story():
        async with victim(tmp_path, method=STILL) as (world, _, line, _):
            world.authority.issue("bob")
            passed_on = offer(world, encode(model(), OFFERED), signer="bob")
            later = offer(world, encode(model(8), OFFERED), generation=2, signer="bob")
            assert (await line.reference(pieces(passed_on), LIMIT)).refusal == ""
            await deliver(world.authority, world.authority.revoke("bob"), world.addresses["ann"])
            assert (await line.reference(pieces(later), LIMIT)).refusal == "record"

    run(story())


def test_references_are_not_brought_too_often(tmp_path):
    async def story():
        async with victim(tmp_path, method=STILL, settings={"pushes_per_second": 1.0}) as (world, node, line, _):
            answers = [
                await line.reference(pieces(offer(world, encode(model(i), OFFERED), generation=i)), LIMIT)
                for i in range(1, 6)
            ]
            assert [answer.refusal for answer in answers].count("rate") >= 3
            assert len(node.offers.held) <= 2

    run(story())


def test_a_hello_that_says_it_holds_what_cannot_be_is_refused(tmp_path):
    async def story():
        async with victim(tmp_path, method=STILL) as (_, node, line, _):
            wrong = [
                [Holding(generation=i, owner="eve", fingerprint=bytes(16)) for i in range(1, 10)],
                [Holding(generation=0, owner="eve", fingerprint=bytes(16))],
                [Holding(generation=2**63, owner="eve", fingerprint=bytes(16))],
                [Holding(generation=1, owner="No Name", fingerprint=bytes(16))],
                [Holding(generation=1, owner="eve", fingerprint=bytes(17))],
            ]
            for holds in wrong:
                hello = world_hello(node, "eve/1")
                hello.holds.extend(holds)
                assert (await line.hello(hello, LIMIT)).refusal == "malformed"
                assert "eve" not in node.members.all
            hello = world_hello(node, "eve/1")
            hello.holds.append(Holding(generation=1, owner="eve", fingerprint=bytes(16)))
            assert (await line.hello(hello, LIMIT)).refusal == ""
            assert node.members.all["eve"].holds == {ReferenceName(1, "eve"): bytes(16)}

    run(story())


def test_a_reference_of_no_use_is_neither_used_nor_passed_on_and_stops_nobody(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1", "eve"), founders=("p0", "p1"), pause=0.02)
        await train(world, "p0", "p1", join=[world.addresses["p0"], world.addresses["p1"]])
        p0, p1 = world.node("p0"), world.node("p1")
        await until(lambda: newest(p1) >= 2)
        line, used, there = world.line("eve", "p0"), set(), set()
        for i in range(12):
            useless = offer(world, encode(model(i, scale=100.0), OFFERED), generation=10_000 + i)
            with contextlib.suppress(grpc.aio.AioRpcError):
                await line.reference(pieces(useless), LIMIT)
            goal = world.events("p0") + 3
            while world.events("p0") < goal:
                used.add(p0.offers.names.used and p0.offers.names.used.owner)
                there |= {name.owner for name in p1.offers.names.held}
                await asyncio.sleep(0.01)
        assert "eve" not in used | there
        assert used & {"p0", "p1"}
        before = max(name.generation for name in p1.offers.names.held)
        await until(lambda: max(name.generation for name in p1.offers.names.held) > before + 2)  # others go on
        assert before < 10_000
        await line.close()
        await world.check()

    run(story())


def test_methods_without_references_say_write_and_answer_nothing_of_them(tmp_path):
    async def story():
        async with victim(tmp_path) as (_, node, line, _):
            hello = node.hello(None)
            assert not hello.holds
            assert (await line.hello(world_hello(node, "eve/1"), LIMIT)).holds == []
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await line.reference(pieces(b"anything"), LIMIT)
            assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
            assert "references" not in read_state(node.store.folder)
            assert not list(node.store.folder.glob("reference-*"))

    run(story())
