"""Records that found a network anew: the authority's, numbered, each number once; and the command that makes them."""

import shutil

import pytest
from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.errors import CertificateError
from pushcen.protocol import UNIT, Farewell
from pushcen.runtime.local import free_ports
from pushcen.runtime.network import Generation
from pushcen.runtime.security.authority import Authority
from pushcen.runtime.security.identity import Certified
from pushcen.runtime.security.records import Records, farewell_fields

FIRST = 1 << 48 | 1


@pytest.fixture
def authority(tmp_path):
    authority = Authority.found(tmp_path / "a", "wards", ["ann", "bob"])
    for name in ("ann", "bob", "eve"):
        authority.issue(name)
    return authority


def records_of(authority):
    return Records(Certified(authority.folder / "ann"))


def test_numbers_do_not_repeat_and_founders_can_be_there(authority):
    assert authority.generation() == Generation(0, ("ann", "bob"))
    authority.refound(["eve"])
    again = Authority.open(authority.folder)
    assert again.generation() == Generation(1, ("eve",))
    again.refound(["ann"])
    assert again.generation().number == 2
    again.refound(["ann"], number=7)
    for number in (0, 2, 7, 2**15):
        with pytest.raises(CertificateError, match="generation"):
            again.refound(["ann"], number=number)
    for founders in ([], ["ann", "ann"], ["nobody"], ["Ann"]):
        with pytest.raises(CertificateError, match="founders"):
            again.refound(founders)
    again.revoke("eve")
    with pytest.raises(CertificateError, match="founders eve: must have a certificate that is not revoked"):
        again.refound(["ann", "eve"])
    assert again.generation() == Generation(7, ("ann",))
    assert (again.issue("late") / "refound.signed").exists()
    with pytest.raises(CertificateError, match="bob/1: is of generation 0"):
        again.forget("bob/1")
    assert again.forget(f"ann/{7 << 48 | 1}")


def test_the_command_says_what_is_missing_and_keeps_what_nobody_heard(authority):
    def pushcen(*words):
        return CliRunner().invoke(app, list(map(str, words)))

    wrong = pushcen("refound", authority.folder, "--founders", "ann", "--to", "ward-1")
    assert (wrong.exit_code, "must be HOST:PORT" in wrong.stderr) == (2, True)
    assert authority.generation().number == 0  # nothing is signed
    nowhere = ("--to", f"127.0.0.1:{free_ports(1)[0]}")
    first = pushcen("refound", authority.folder, *nowhere)
    assert (first.exit_code, "--founders NAME,NAME: is needed" in first.stderr) == (2, True)
    assert (
        "founders nobody: must have a certificate"
        in pushcen("refound", authority.folder, "--founders", "ann,nobody", *nowhere).stderr
    )
    untold = pushcen("refound", authority.folder, "--founders", "ann, eve", *nowhere)
    assert (untold.exit_code, "nobody was told" in untold.stderr) == (2, True)
    assert authority.generation() == Generation(1, ("ann", "eve"))
    assert "generation 1, founded by ann, eve" in pushcen("refound", authority.folder, *nowhere).output
    assert authority.generation().number == 1  # told again, not founded again
    assert "generation 1, founded anew by ann, eve" in pushcen("certs", "show", authority.folder).output


def test_only_the_authority_founds_anew_and_each_number_once(authority):
    records = records_of(authority)
    eve = Certified(authority.folder / "eve")
    with pytest.raises(CertificateError, match="eve may not make"):
        records.add(eve.sign(Generation(1, ("eve",)).fields()))
    shutil.copytree(authority.folder, authority.folder.parent / "b")
    other = Authority.open(authority.folder.parent / "b")  # a backup of the authority, which counts for itself
    first, second, newer = authority.refound(["ann"]), other.refound(["bob"]), authority.refound(["eve"])
    assert records.add(first) == Generation(1, ("ann",))
    for entered in (False, True):
        if entered:
            records.enter(records.next)
        with pytest.raises(CertificateError, match="another refound numbered 1, founded by bob, not by ann"):
            records.add(second)
        assert records.newest == Generation(1, ("ann",))
    assert records.add(newer) == Generation(2, ("eve",))
    assert records.add(first) is None
    assert records.missing([]) == [newer]
    assert records.generation.number == 1  # until this peer has entered it
    other.refound(["bob"])
    settled = other.refound(["bob"], settings={"method.clusters": "8"})
    assert records.add(settled) == Generation(3, ("bob",), {"method.clusters": "8"})
    with pytest.raises(CertificateError, match="only method, training, sparsity and task"):
        other.refound(["bob"], settings={"runtime.view": "8"})


def test_what_was_said_of_an_earlier_generation_counts_no_more(authority):
    records = records_of(authority)
    assert records.add(authority.forget("bob/1")) == ("bob/1", UNIT)
    record = authority.refound(["ann", "bob"])
    late = authority.forget(f"bob/{FIRST}")
    assert records.add(late) is None  # not yet: this peer is in the generation before
    records.add(record)
    entering = records.save(records.next)
    records.enter(records.next)
    assert list(records.said()) == [(f"bob/{FIRST}", UNIT)]
    saved = records.save()
    assert set(saved) == {one.SerializeToString().hex() for one in (record, late)}
    for text in (saved, entering):
        again = records_of(authority)
        again.restore(text, 1)
        assert (again.generation, again.next) == (Generation(1, ("ann", "bob")), None)
        assert again.save() == saved


def test_a_ledger_whose_records_hold_no_more_is_still_opened(authority):
    """As after the certificate of somebody who had left was revoked: what it said was done long ago."""
    eve = Certified(authority.folder / "eve")
    records = records_of(authority)
    records.add(eve.sign(farewell_fields(Farewell("eve/1", {}))))
    records.add(authority.forget("bob/1"))
    saved = records.save()
    again = records_of(authority)
    again._identity.revoke(authority.revoke("eve"))
    assert ["was revoked" in wrong for wrong in again.restore([*saved, "junk", "ff"], 0)] == [True, False, False]
    assert list(again.said()) == [("bob/1", UNIT)]
