"""Lasting records get through, whatever a member signs to be in their way."""

import contextlib

import pytest

from pushcen.errors import CertificateError
from pushcen.protocol import Farewell
from pushcen.runtime.security import records as records_module
from pushcen.runtime.security.authority import Authority
from pushcen.runtime.security.identity import Certified
from pushcen.runtime.security.records import Records, farewell_fields
from pushcen.runtime.wire import News

from .world import World, run, until

MESSAGE = 1 << 20  # bytes that gossip may have


@pytest.fixture
def authority(tmp_path):
    authority = Authority.found(tmp_path / "a", "wards", ["ann", "bob"])
    for name in ("ann", "bob", "eve"):
        authority.issue(name)
    return authority


def records_of(authority, *names):
    return [Records(Certified(authority.folder / name)) for name in names]


def farewell(authority, name, epoch, credited):
    return Certified(authority.folder / name).sign(farewell_fields(Farewell(f"{name}/{epoch}", credited)))


def test_no_number_of_farewells_keeps_another_record_back(authority):
    """Eve tells ann one thing and bob another of each of her epochs: neither takes what the other has."""
    ann, bob = records_of(authority, "ann", "bob")
    for epoch in range(1, 90):
        ann.add(farewell(authority, "eve", epoch, {}))
        bob.add(farewell(authority, "eve", epoch, {"ann/1": 1}))
    honest = farewell(authority, "ann", 1, {})
    forget, revoked = authority.forget("eve/1"), authority.revoke("eve")
    for record in (honest, forget, revoked):
        ann.add(record)
    given = ann.missing(bob.have())
    assert forget in given
    assert revoked in given
    assert any(honest in ann.missing(bob.have()) for _ in range(20))


def test_there_is_always_room_for_the_authority(authority, monkeypatch):
    monkeypatch.setattr(records_module, "MOST", 200)
    [ann] = records_of(authority, "ann")
    for name in ("ann", "bob", "eve"):
        for epoch in (1, 2):
            ann.add(farewell(authority, name, epoch, {}))
    monkeypatch.setattr(records_module, "MOST", 3)
    forget = authority.forget("eve/9")
    assert ann.add(forget) == ("eve/9", 0)
    assert forget in ann.missing([])


def test_farewells_are_bounded_in_length_one_by_one_and_together(authority):
    [ann] = records_of(authority, "ann")
    with pytest.raises(CertificateError, match="longer farewells of eve"):
        ann.add(farewell(authority, "eve", 1, {f"x{number}/1": 1 for number in range(20_000)}))
    long = {f"x{number}/1": 1 for number in range(10_000)}
    for epoch in range(10):
        with contextlib.suppress(CertificateError):
            ann.add(farewell(authority, "eve", epoch, long))
    assert 0 < len(ann.have()) < 10
    given = ann.missing([])
    assert given
    assert sum(record.ByteSize() for record in given) < MESSAGE


def test_a_word_of_megabytes_on_where_a_member_listens_is_not_passed_on(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1", "eve"))
        await world.start("p0", "p1")
        node = world.node("p0")
        fields = {"kind": "member", "peer": "eve/5", "boot": 1, "address": "127.0.0.1:9", "more": "x" * 900_000}
        long = Certified(world.certs("eve")).sign(fields)
        line = world.line("eve", "p0")
        await line.gossip(News(members=[long]), 5)
        assert "eve" not in node.members.all
        assert node.metrics.refusals.labels("record")._value.get() == 1
        await line.gossip(News(records=[farewell(world.authority, "eve", 5, {})]), 5)
        await until(lambda: "eve/5" in world.node("p1").members.gone)  # which it has by gossip
        await line.close()
        await world.stop()

    run(story())
