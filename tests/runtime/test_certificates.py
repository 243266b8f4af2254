"""Who belongs: the authority's certificates, signed records, revocation."""

import datetime
import stat

import pytest

from pushcen.errors import CertificateError
from pushcen.protocol import UNIT
from pushcen.runtime.security.authority import Authority, read_trust
from pushcen.runtime.security.certificates import der, make_certificate, new_key, read_certificate
from pushcen.runtime.security.identity import Certified, Insecure
from pushcen.runtime.security.records import Records, farewell_fields
from pushcen.runtime.security.trust import sign, utc


@pytest.fixture
def authority(tmp_path):
    authority = Authority.found(tmp_path / "a", "wards", ["ann", "bob"])
    for name in ("ann", "bob", "eve"):
        authority.issue(name)
    return authority


def test_a_certificate_names_its_peer_and_its_network(authority):
    ann = Certified(authority.folder / "ann")
    assert ann.name == "ann"
    assert ann.network == authority.network == Authority.open(authority.folder).network
    assert ann.network.founders == ("ann", "bob")


def test_keys_are_for_their_owner_only(authority):
    for path in (authority.folder / "authority.key", authority.folder / "ann" / "peer.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not (authority.folder / "ann" / "authority.key").exists()


def test_the_description_cannot_be_changed(authority):
    path = authority.folder / "ann" / "network.signed"
    path.write_bytes(path.read_bytes().replace(b'"bob"', b'"eve"'))
    with pytest.raises(CertificateError, match="signature that does not match"):
        Certified(authority.folder / "ann")


def test_a_certificate_of_another_network_or_key_is_told(authority, tmp_path):
    other = Authority.found(tmp_path / "b", "wards", ["ann"])
    other.issue("ann")
    mixed = authority.folder / "ann"
    (mixed / "peer.pem").write_bytes((tmp_path / "b" / "ann" / "peer.pem").read_bytes())
    with pytest.raises(CertificateError, match="another authority"):
        Certified(mixed)
    (mixed / "peer.pem").write_bytes((authority.folder / "bob" / "peer.pem").read_bytes())
    with pytest.raises(CertificateError, match=r"peer\.key is not the key"):
        Certified(mixed)


@pytest.mark.parametrize("days", [-400, 400])
def test_a_certificate_out_of_its_time_is_refused(authority, days):
    trust = read_trust(authority.folder)
    certificate = der(read_certificate(authority.folder / "ann" / "peer.pem"))
    assert trust.member(certificate) == "ann"
    trust.clock = lambda: utc() + datetime.timedelta(days=days)
    with pytest.raises(CertificateError, match="a certificate that holds from"):
        trust.member(certificate)
    assert trust.member(certificate, expired=True) == "ann"


def test_what_is_revoked_stays_revoked_and_a_new_certificate_works(authority):
    old = der(read_certificate(authority.folder / "eve" / "peer.pem"))
    trust = read_trust(authority.folder)
    newer = authority.revoke("eve")
    assert trust.revoke(newer)
    assert not trust.revoke(newer)
    with pytest.raises(CertificateError, match="was revoked"):
        trust.member(old)
    authority.issue("eve", out=authority.folder / "eve-again")
    assert trust.member(der(read_certificate(authority.folder / "eve-again" / "peer.pem"))) == "eve"
    authority.revoke("bob")
    assert len(read_trust(authority.folder).revoked) == 2
    with pytest.raises(CertificateError, match="never issued"):
        authority.revoke("nobody")


def test_only_the_authority_revokes_and_forgets(authority):
    ann, eve = (Certified(authority.folder / name) for name in ("ann", "eve"))
    records = Records(ann)
    assert records.add(authority.forget("bob/1")) == ("bob/1", UNIT)
    assert records.add(authority.forget("bob/1")) is None  # known
    for fields in ({"kind": "forget", "peer": "bob/1"}, {"kind": "revoked", "number": 5, "serials": []}):
        with pytest.raises(CertificateError, match="eve may not make"):
            records.add(eve.sign(fields))
    key = new_key()
    for fields in ({"kind": "forget", "peer": "ann/1", "network": ann.network.fingerprint},):
        with pytest.raises(CertificateError, match="does not match"):
            records.add(sign(fields, key))


def test_a_farewell_is_its_peers_own_and_outlives_its_certificate(authority):
    from pushcen.protocol import Farewell

    ann, eve = (Certified(authority.folder / name) for name in ("ann", "eve"))
    farewell = Farewell("eve/1", {"ann/1": 5})
    record = eve.sign(farewell_fields(farewell))
    ann.trust.clock = lambda: utc() + datetime.timedelta(days=4000)
    assert Records(ann).add(record) == farewell
    with pytest.raises(CertificateError, match="that eve signed"):
        Records(ann).add(eve.sign(farewell_fields(Farewell("bob/1", {}))))
    for credited in ({"ann/1": -1}, {"ann": 1}, [], {"ann/1": "5"}):
        with pytest.raises((CertificateError, ValueError)):
            Records(ann).add(eve.sign({"kind": "farewell", "peer": "eve/2", "credited": credited}))


def test_records_go_to_those_who_lack_them(authority):
    ann, bob = (Records(Certified(authority.folder / name)) for name in ("ann", "bob"))
    for number in range(3):
        ann.add(authority.forget(f"bob/{number}"))
    ann.add(authority.revoke("eve"))
    for record in ann.missing(bob.have()):
        bob.add(record)
    assert set(bob.have()) == set(ann.have())
    assert ann.missing(bob.have()) == []


def test_a_network_is_made_once_and_with_names_that_can_be_hosts(authority, tmp_path):
    with pytest.raises(CertificateError, match="must be empty"):
        Authority.found(authority.folder, "wards", ["ann"])
    for founders in ([], ["ann", "ann"], ["Ann"], ["a" * 64], ["../ann"]):
        with pytest.raises(CertificateError):
            Authority.found(tmp_path / "c", "wards", founders)
    with pytest.raises(CertificateError, match="has a key already"):
        authority.issue("ann")


def test_without_certificates_only_on_this_machine():
    from pushcen.errors import OptionError

    with pytest.raises(OptionError, match="--insecure is for"):
        Insecure("ann", ("ann",)).listen(None, "0.0.0.0:7000")
    with pytest.raises(OptionError, match="--insecure is for"):
        Insecure("ann", ("ann",)).channel("192.0.2.7:7000", "bob", [])


def test_an_expired_certificate_is_told_at_the_start(authority):
    key, ago = new_key(), utc() - datetime.timedelta(days=30)
    network = authority.network.fingerprint
    old = make_certificate(key.public_key(), authority.root, authority.key, network, "ann", 10, start=ago)
    from pushcen.runtime.security.certificates import key_bytes, pem

    folder = authority.folder / "ann"
    (folder / "peer.pem").write_bytes(pem(old))
    (folder / "peer.key").write_bytes(key_bytes(key))
    with pytest.raises(CertificateError, match=r"peer\.pem: a certificate that holds from"):
        Certified(folder)
