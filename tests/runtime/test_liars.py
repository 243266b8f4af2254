"""A neighbour that answers with lies: nobody's address is taken, no log is filled, no peer ends."""

import asyncio
import time

import pytest

from pushcen.errors import NetworkError
from pushcen.protocol import UNIT, Contact, Envelope
from pushcen.runtime.wire import Hello

from .liar import liar
from .test_hostile import piece, pieces, victim, world_hello
from .world import World, run, until


@pytest.mark.parametrize("claimed", ["p1/1", "No Name/1", "p1", "", "p0/1", "any/1"])
def test_who_claims_another_name_gets_nobodys_place(tmp_path, claimed):
    async def story():
        world = World(tmp_path, names=("p0", "p1", "eve"), founders=("p0", "p1"), pause=0.02)
        await world.start("p0", "p1", join=[world.addresses["p0"], world.addresses["p1"]])
        await until(lambda: "p1" in world.node("p0").members.all)
        await world.stop("p0")
        lied = asyncio.Event()

        def lie():
            lied.set()
            return Hello(major=1, peer=claimed, boot=1, run=run_of)

        run_of = world.node("p1").run
        async with liar(world, "eve", lie):
            [node] = await world.start("p0", join=[world.addresses["eve"]])
            node.members.all.clear()  # it starts from eve's address alone
            await until(lied.is_set)
            before = node.peer.events
            await until(lambda: node.peer.events > before + 3)
            assert world.addresses["eve"] not in node.members.addresses().values()
            await until(lambda: node.members.addresses().get("p1") == world.addresses["p1"])  # it said hello itself
            assert not world.lives["p0"].done()
            await world.stop()

    run(story())


@pytest.mark.parametrize("honest", [True, False])
def test_no_single_neighbour_keeps_a_founder_from_starting(tmp_path, honest):
    """Eve says that the run differs: it counts only if nobody agrees."""

    async def story():
        world = World(tmp_path, names=("p0", "p1", "eve"))
        if honest:
            await world.start("p1", live=False, join=[])
        async with liar(world, "eve", lambda: Hello(major=1, peer="eve/1", boot=1, refusal="run", about={"a": "b"})):
            join = [world.addresses[name] for name in (("eve", "p1") if honest else ("eve",))]
            if honest:
                [node] = await world.start("p0", live=False, join=join)
                assert (node.peer.me, node.peer.held) == ("p0/1", UNIT)
                await world.stop()
            else:
                with pytest.raises(NetworkError, match=r"eve/1 at .* runs something else"):
                    await world.start("p0", live=False, join=join)

    run(story())


def test_a_text_of_megabytes_is_cut_wherever_it_goes(tmp_path, caplog):
    long = "x" * 1_000_000

    async def story():
        world = World(tmp_path, names=("p0", "eve"))
        [node] = await world.start("p0", live=False, join=[])
        neighbours = world.drivers["p0"].channels
        answers = [
            Hello(refusal="leaving", text=long),
            Hello(refusal="run", about={long: long, "a": long}),
            Hello(refusal="mass", text=long),
            Hello(refusal=long, text=long),
        ]

        def say():
            return Hello(major=1, peer="eve/1", boot=1, run=node.setup) if honest else answers[0]

        honest = True
        payload = node.client.learner.encode()
        async with liar(world, "eve", say):
            for answer in list(answers):
                answer.major, answer.peer, answer.boot = 1, "eve/1", 1
                honest = True
                node.members.meet("eve", world.addresses["eve"], time.monotonic())
                await neighbours.ask("eve")
                assert node.members.contact("eve") == Contact("eve/1", 1)
                honest = False
                neighbours.send([Envelope("p0/1", "eve/1", 0, 1, 5, payload)])
                await neighbours.drain(10)
                assert len(node.members.all["eve"].refusal) <= 600
                answers.pop(0)
        outcomes = {s.labels["outcome"] for m in node.metrics.pushes.collect() for s in m.samples}
        assert outcomes == {"leaving", "run", "mass", "other"}
        await world.stop()

    run(story())
    said = [str(getattr(record, "fields", "")) + record.getMessage() for record in caplog.records]
    assert any("xxxx" in line for line in said)
    assert max(map(len, said)) < 2000


def test_a_new_epoch_that_said_hello_may_push_and_the_next_one_has_to_wait(tmp_path):
    async def story():
        async with victim(tmp_path) as (_, node, line, payload):

            async def push(epoch):
                envelope = Envelope(f"eve/{epoch}", "ann/1", 0, 1, UNIT // 8, None)
                return (await line.push(pieces(piece(envelope, payload)), 5)).refusal

            async def hello(epoch):
                return (await line.hello(world_hello(node, f"eve/{epoch}"), 5)).refusal

            assert [await hello(1), await push(1)] == ["", ""]
            assert [await hello(5), await hello(5), await push(5)] == ["", "", ""]
            assert [await hello(4), await push(1)] == ["epoch", "epoch"]
            assert [await hello(6), await push(6), await push(5)] == ["rate", "rate", ""]

    run(story())
