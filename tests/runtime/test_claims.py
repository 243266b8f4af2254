"""Who has been how far is believed under its own signature only; and what was signed finds out every older copy."""

import datetime
import shutil
import time
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushcen.errors import CertificateError
from pushcen.protocol import UNIT, Envelope, epoch_of
from pushcen.protocol.wire import header_bytes
from pushcen.runtime.claims import Claims, Progress, read_word
from pushcen.runtime.members import Members
from pushcen.runtime.options import RuntimeOptions
from pushcen.runtime.security.authority import Authority
from pushcen.runtime.security.identity import Certified, Insecure
from pushcen.runtime.security.trust import utc
from pushcen.runtime.wire import Hello, Link, Piece, Signed

from .liar import liar
from .test_hostile import pieces, state_of, victim, world_hello
from .world import World, run, until

FAR = 9_000_000_000_000_000_000
BYTES = (2**100).to_bytes(16, "little")


def claims(node):
    return node.metrics.refusals.labels("claim")._value.get()


async def lie(world, to, **more):
    """Let eve say hello with all that can be said unsigned: a later epoch, and credit beyond what was sent."""
    node = world.node(to)
    line = world.line("eve", to)
    me = node.peer.me
    link = Link(sender=me, credited=BYTES, accepted=BYTES)
    hello = Hello(major=1, peer="eve/1", boot=1, run=node.setup, known=f"{to}/{FAR}", known_boot=7, link=link, **more)
    try:
        return await line.hello(hello, 5)
    finally:
        await line.close()


def test_false_hellos_to_all_founders_leave_every_unit_where_it_is(tmp_path):
    async def story():
        names = ("p0", "p1", "p2")
        world = World(tmp_path, names=(*names, "eve"), founders=names, pause=0.02)
        await world.start(*names)
        await until(lambda: all(world.events(name) > 2 for name in names))
        await world.stop()
        await world.start(*names)  # in a later boot, in which nobody has spoken to them yet
        eve = Certified(world.certs("eve"))
        for name in names:
            forged = eve.sign({"kind": "progress", "peer": f"{name}/{FAR}", "boot": 9, "sequence": 9})
            before = claims(world.node(name))
            await lie(world, name)
            assert claims(world.node(name)) >= before + 2
            before = claims(world.node(name))
            await lie(world, name, returned=forged)
            assert claims(world.node(name)) >= before + 3
        before = {name: world.events(name) for name in names}
        await until(lambda: all(world.events(name) > before[name] + 3 for name in names))
        assert [world.node(name).peer.me for name in names] == ["p0/1", "p1/1", "p2/1"]
        found = await world.check()
        assert found.held + found.on_links == 3 * UNIT

    run(story(), 120)


def test_no_false_word_keeps_a_founder_from_founding(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "eve"), founders=("p0",))
        [eve] = await world.start("eve", live=False, join=[])
        honest = eve.hello

        def lies(*arguments, **options):
            hello = honest(*arguments, **options)
            hello.known, hello.known_boot = f"p0/{FAR}", 7
            hello.returned.CopyFrom(eve.identity.sign({"kind": "progress", "peer": "p0/5", "boot": 1, "sequence": 3}))
            return hello

        world.drivers["eve"].node.hello = lies
        [node] = await world.start("p0", live=False)
        assert (node.peer.me, node.peer.held) == ("p0/1", UNIT)
        assert claims(node) >= 1
        await world.stop()

    run(story())


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ({"peer": "eve/1", "boot": 1, "sequence": 5}, ""),
        ({"peer": "eve/1", "boot": 1, "sequence": 7}, ""),  # two envelopes of one commit
        ({"peer": "eve/1", "boot": 1, "sequence": 4}, "record"),
        ({"peer": "eve/2", "boot": 1, "sequence": 5}, "record"),
        ({"peer": "ann/1", "boot": 1, "sequence": 5}, "record"),
        ({"peer": "eve/1", "boot": -1, "sequence": 5}, "record"),
        ({"peer": "eve/1", "boot": 1, "sequence": 2**63}, "record"),
        ({"peer": "eve/1", "boot": True, "sequence": "5"}, "record"),
        ({"peer": ["eve/1"], "boot": 1, "sequence": 5}, "record"),
        ({"peer": "eve/1", "boot": 1}, "record"),
    ],
)
def test_a_push_whose_word_cannot_be_its_senders_is_refused(tmp_path, word, reason):
    async def story():
        async with victim(tmp_path) as (world, node, line, payload):
            signed = Certified(world.certs("eve")).sign({"kind": "progress", **word})
            envelope = Envelope("eve/1", "ann/1", 0, 5, UNIT // 2, None)
            before = state_of(node)
            message = Piece(envelope=header_bytes(envelope, len(payload)), data=payload, progress=signed)
            answer = await line.push(pieces(message.SerializeToString()), 5)
            assert (answer.refusal, answer.news) == (reason, not reason)
            hello = await line.hello(world_hello(node, "eve/1"), 5)
            if reason:
                assert state_of(node) == before
                assert not hello.HasField("returned")
            else:
                assert hello.returned == signed

    run(story())


def test_a_word_whose_signature_does_not_hold_is_counted_and_neither_kept_nor_returned(tmp_path):
    async def story():
        async with victim(tmp_path) as (world, node, line, payload):
            signed = Certified(world.certs("eve")).sign({"kind": "progress", "peer": "eve/1", "boot": 1, "sequence": 5})
            signed.body = signed.body.replace(b'"sequence": 5', b'"sequence": 6')
            message = Piece(
                envelope=header_bytes(Envelope("eve/1", "ann/1", 0, 5, 5, None), len(payload)),
                data=payload,
                progress=signed,
            )
            await line.push(pieces(message.SerializeToString()), 5)
            assert not (await line.hello(world_hello(node, "eve/1"), 5)).HasField("returned")
            assert node.metrics.refusals.labels("record")._value.get() == 1

    run(story())


@pytest.fixture
def authority(tmp_path):
    authority = Authority.found(tmp_path / "a", "wards", ["ann", "bob"])
    for name in ("ann", "bob"):
        authority.issue(name)
    return authority


def words(identity, *progress):
    claims = Claims(identity)
    return [claims.sign(Progress(*one)) for one in progress]


def test_only_what_is_ahead_of_the_ledger_and_signed_with_ones_own_name_counts(authority):
    ann, bob = (Certified(authority.folder / name) for name in ("ann", "bob"))
    mine = Claims(ann)
    here = Progress(5, 3, 10)
    for progress in ((5, 3, 10), (5, 2, 10), (4, 9, 99), (5, 3, 9)):
        assert not mine.outdates(words(ann, progress)[0], here)
    assert mine.own == (0, 0, 0)
    for progress in ((5, 3, 11), (5, 4, 0), (6, 1, 0), (5, 2, 20)):  # the last: restored, and started once more since
        assert mine.outdates(words(ann, progress)[0], here)
    for forged in words(bob, (6, 1, 1)), [bob.sign({"kind": "progress", "peer": "ann/6", "boot": 1, "sequence": 1})]:
        with pytest.raises(CertificateError):
            mine.outdates(*forged, here)
    assert mine.own == (6, 1, 0)


def test_a_word_outlives_its_certificate_but_not_the_trust_in_it(authority):
    old = Certified(authority.folder / "ann")
    [word] = words(old, (1, 1, 20))
    new = Certified(authority.issue("ann", out=authority.folder / "again"))
    new.trust.clock = lambda: utc() + datetime.timedelta(days=4000)  # the first has expired
    assert Claims(new).outdates(word, Progress(1, 1, 10))
    new.trust.revoke(authority.revoke("ann"))  # as after a theft of the key
    with pytest.raises(CertificateError, match="revoked"):
        Claims(new).outdates(word, Progress(1, 1, 10))


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 6)), min_size=1, max_size=12))
def test_one_word_of_each_peer_is_kept_and_none_of_an_older_epoch_or_sequence_takes_its_place(steps):
    ann, bob = Insecure("ann", ("ann",)), Insecure("bob", ("ann",))
    theirs = Claims(ann)
    for epoch, boot, sequence in steps:
        [word] = words(bob, (epoch, boot, sequence))
        envelope = Envelope(f"bob/{epoch}", "ann/1", 0, sequence, 0, None)
        theirs.take(theirs.read(word.SerializeToString(), envelope))
    assert theirs.check() == []
    hello = Hello()
    theirs.give_back(hello, "bob", None)
    newest = max((epoch, sequence) for epoch, _, sequence in steps)
    [(key, row)] = theirs.unsaved().items()
    again = Claims(ann)
    again.restore({key: row, "peer": {}})
    for word in (hello.returned, Signed.FromString(bytes.fromhex(row)), again._kept["bob"].signed):
        progress = read_word(word).progress
        assert (progress.epoch, progress.sequence) == newest
    theirs.saved({key: row})
    assert theirs.unsaved() == again.unsaved() == {}


def test_a_peer_is_shown_the_latest_epoch_it_has_signed_whatever_it_pushed_before(authority):
    """Bob pushed to ann in generation 0, and in generation 1 only said where he listens: he has founded that."""
    ann, bob = (Certified(authority.folder / name) for name in ("ann", "bob"))
    theirs = Claims(ann)
    [word] = words(bob, (1, 9, 20))
    theirs.take(theirs.read(word.SerializeToString(), Envelope("bob/1", "ann/1", 0, 20, 0, None)))
    assert theirs.check() == []
    members = Members("ann", RuntimeOptions(), Random(0))
    for epoch, latest in ((1, word), (1 << 48 | 1, None)):
        fields = {"kind": "member", "peer": f"bob/{epoch}", "boot": 1, "address": "127.0.0.1:9"}
        record = bob.sign(fields)
        members.learn(record, "bob", fields, 0.0, lambda _: False)
        hello = Hello()
        theirs.give_back(hello, "bob", members.all["bob"])
        assert hello.returned == (latest or record)
    assert hello.known == f"bob/{1 << 48 | 1}"


@pytest.mark.parametrize("knows", ["a signed word", "a hello", "nobody in time"])
def test_who_lost_its_disk_after_its_clock_was_ahead_is_not_locked_out(tmp_path, monkeypatch, knows):
    ahead, clock = 10 * 365 * 86_400 * 10**9, time.time_ns

    async def story():
        world = World(tmp_path, names=("p0", "p1", "late"), founders=("p0", "p1"), pause=0.02)
        await world.start("p0", "p1")
        await until(lambda: all(world.events(name) > 2 for name in ("p0", "p1")))
        monkeypatch.setattr(time, "time_ns", lambda: clock() + ahead)
        [node] = await world.start("late", live=knows != "a hello")
        before = node.peer.me
        if knows == "a hello":  # it was met, and has signed nothing that anybody kept
            for name in ("p0", "p1"):
                line = world.line("late", name)
                assert not (await line.hello(node.hello(None), 5)).refusal
                await line.close()
            await until(lambda: all(world.node(name).members.contact("late") for name in ("p0", "p1")))
        else:
            words = [world.node(name).claims._kept for name in ("p0", "p1")]
            await until(lambda: all("late" in kept for kept in words))
        await world.stop("late")
        shutil.rmtree(world.state("late"))
        monkeypatch.setattr(time, "time_ns", clock)
        [node] = await world.start("late", join=[] if knows == "nobody in time" else [world.addresses["p0"]])
        if knows != "nobody in time":
            assert epoch_of(node.peer.me) > epoch_of(before)
        await until(lambda: epoch_of(node.peer.me) > epoch_of(before) and node.peer.held > 0)
        await until(lambda: node.metrics.pushes.labels("news")._value.get() > 3)
        await world.stop()

    run(story(), 120)


@pytest.mark.parametrize("said", ["late/140000000000000", "late/9000000000000000000", "p1/1", "late", "late/-1"])
def test_an_absurd_epoch_that_somebody_makes_up_is_not_taken(tmp_path, said):
    async def story():
        world = World(tmp_path, names=("p0", "late", "eve"), founders=("p0",))
        async with liar(world, "eve", lambda: Hello(major=1, peer="eve/1", boot=1, known=said)):
            [node] = await world.start("late", live=False, join=[world.addresses["eve"]])
        assert abs(epoch_of(node.peer.me) - time.time() * 1000) < 600_000
        await world.stop()

    run(story())
