"""The wire: generated code is up to date, bytes are frozen, newer minor versions are read, newer majors refused."""

from pathlib import Path

import pytest

from pushcen.protocol import Envelope
from pushcen.protocol.wire import header_bytes
from pushcen.runtime import wire
from pushcen.runtime.wire import MAJOR, Hello, Holding, Link, News, Piece, Signed
from pushcen.runtime.wire.make import SOURCES, make

from .test_hostile import piece, pieces, state_of, victim, world_hello
from .world import LIMIT, run

GOLDEN = Path(__file__).parent / "golden"
SIGNED = Signed(body=b'{"kind": "member"}', signature=b"\x01\x02", certificate=b"\x03\x04")
LINK = Link(credited=(5).to_bytes(16, "little"), accepted=(7).to_bytes(16, "little"), sender="bob/1")
MESSAGES = {
    "hello": Hello(
        major=1, minor=0, peer="ann/1", boot=3, address="192.0.2.7:7000", run=bytes(range(16)),
        about={"method": "pushcen"}, link=LINK, known="bob/1", known_boot=2, refusal="run", text="why", news=True,
    ),
    "news": News(members=[SIGNED], records=[SIGNED, SIGNED], have=[1, 2**63]),
    "piece": Piece(envelope=header_bytes(Envelope("ann/1", "bob/1", 0, 7, 550, None), 5), data=b"model"),
    "hello_1_1": Hello(major=1, minor=1, peer="ann/1", boot=3, returned=SIGNED),
    "hello_1_2": Hello(major=1, minor=2, peer="ann/281474976710657", boot=3, refusal="generation", refound=SIGNED),
    "hello_1_3": Hello(
        major=1, minor=3, peer="ann/1", boot=3, holds=[Holding(generation=7, owner="bob", fingerprint=bytes(range(16)))]
    ),
    "hello_1_5": Hello(major=1, minor=5, peer="ann/1", boot=3, agree=bytes(range(16)), varies={"training.lr": "0.01"}),
    "piece_1_1": Piece(
        envelope=header_bytes(Envelope("ann/1", "bob/1", 0, 7, 550, None), 5), data=b"model", progress=SIGNED
    ),
}  # fmt: skip


def test_the_generated_code_is_that_of_the_proto_file(tmp_path):
    make(tmp_path)
    here = Path(wire.__file__).parent
    for name in ("peer_pb2.py", "peer_pb2.pyi"):
        made = tmp_path / here.relative_to(SOURCES) / name
        assert made.read_text() == (here / name).read_text(), f"run {here / 'make.py'}"


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_are_the_same_bytes_for_ever(name):
    path = GOLDEN / f"{name}.bin"
    assert MESSAGES[name].SerializeToString(deterministic=True) == path.read_bytes()
    assert type(MESSAGES[name]).FromString(path.read_bytes()) == MESSAGES[name]


def test_a_newer_minor_versions_fields_are_ignored(tmp_path):
    async def story():
        async with victim(tmp_path) as (_, node, line, payload):
            more = b"\xc2\x3e\x05extra" + b"\xc8\x3e\x01"  # fields 1000 and 1001, which no version has
            hello = world_hello(node, "eve/1")
            hello.minor = 7
            answer = await line._hello(hello.SerializeToString() + more, timeout=LIMIT)
            assert Hello.FromString(answer).refusal == ""
            envelope = Envelope("eve/1", "ann/1", 0, 5, 5, None)
            answer = await line.push(pieces(piece(envelope, payload) + more), LIMIT)
            assert answer.news

    run(story())


def test_a_newer_major_version_is_refused_and_told_so(tmp_path):
    async def story():
        async with victim(tmp_path) as (_, node, line, payload):
            hello = world_hello(node, "eve/1")
            hello.major = MAJOR + 1
            before = state_of(node)
            answer = await line.hello(hello, LIMIT)
            assert answer.refusal == "version"
            assert answer.text == "eve speaks version 2 of the protocol, ann 1"
            newer = bytearray(header_bytes(Envelope("eve/1", "ann/1", 0, 5, 5, None), len(payload)))
            newer[4] = 2
            answer = await line.push(pieces(Piece(envelope=bytes(newer), data=payload).SerializeToString()), LIMIT)
            assert "envelope of version 2: this pushcen reads version 1" in answer.text
            assert state_of(node) == before

    run(story())
