"""Keys stay at home: requests, what the authority makes of them, and certificates that a running peer takes over."""

import datetime
import os
import ssl
import stat

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from pushcen.errors import CertificateError
from pushcen.runtime.security.authority import Authority
from pushcen.runtime.security.certificates import (
    der,
    fingerprint_of,
    key_bytes,
    make_certificate,
    new_key,
    pem,
    read_certificate,
    read_key,
)
from pushcen.runtime.security.identity import Certified, Insecure
from pushcen.runtime.security.requests import LONGEST, make_request, read_request
from pushcen.runtime.security.trust import utc

from .test_commands import pushcen
from .test_reach import news, open_and_hidden
from .world import World, run, until

SHA256 = hashes.SHA256()


@pytest.fixture
def authority(tmp_path):
    return Authority.found(tmp_path / "a", "wards", ["ann", "bob"])


def take_home(authority, name, folder):
    """Copy what the authority answers to the site's folder, as an operator would."""
    for path in (authority.folder / name).iterdir():
        (folder / path.name).write_bytes(path.read_bytes())


def request(key=None, name="ann", extensions=(), algorithm=SHA256):
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, one) for one in [name] if one is not None])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return builder.sign(key or new_key(), algorithm).public_bytes(serialization.Encoding.PEM)


def test_a_key_is_made_at_the_site_and_never_leaves_it(authority, tmp_path):
    site = tmp_path / "site"
    fingerprint = make_request(site, "ann")
    assert stat.S_IMODE((site / "peer.key").stat().st_mode) == 0o600
    assert b"PRIVATE" not in (site / "peer.csr").read_bytes()
    asked = read_request(site / "peer.csr", "ann")
    assert fingerprint_of(asked) == fingerprint
    authority.sign("ann", asked)
    assert {path.name for path in (authority.folder / "ann").iterdir()} == {
        "authority.pem", "network.signed", "revoked.signed", "peer.pem",
    }  # fmt: skip
    take_home(authority, "ann", site)
    assert Certified(site).name == "ann"
    [entry] = authority.issued()
    assert (entry["name"], entry["key"]) == ("ann", fingerprint)


def test_the_commands_print_the_same_fingerprint_at_both_ends(tmp_path):
    folder, site = tmp_path / "authority", tmp_path / "site"
    pushcen("certs", "init", folder, "--founder", "ann")
    asked = pushcen("certs", "request", site, "ann")
    assert asked.exit_code == 0, asked.output
    signed = pushcen("certs", "sign", folder, "ann", site / "peer.csr")
    assert signed.exit_code == 0, signed.output
    [said] = {line for line in asked.output.splitlines() if line.startswith("key of ann: ")}
    assert said in signed.output.splitlines()
    assert len(said.removeprefix("key of ann: ").replace(" ", "")) == 32
    for path in (folder / "ann").iterdir():
        (site / path.name).write_bytes(path.read_bytes())
    [root] = [line for line in signed.output.splitlines() if line.startswith("key of the authority: ")]
    assert root in pushcen("certs", "show", site).output.splitlines()
    again = pushcen("certs", "request", site)  # to renew it: the same key, and the name that it has
    assert said in again.output.splitlines()
    assert "for trying things out" in pushcen("certs", "issue", folder, "bob").output


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (request(name="bob"), "asks for the name 'bob', not 'ann'"),
        (request(name=None), "must name one peer"),
        (request(rsa.generate_private_key(65537, 2048)), "key must be ECDSA P-256"),
        (request(ed25519.Ed25519PrivateKey.generate(), algorithm=None), "key must be ECDSA P-256"),
        (request(ec.generate_private_key(ec.SECP384R1())), "key must be ECDSA P-256"),
        (request(algorithm=hashes.SHA512()), "must be signed with SHA-256"),
        (b"", "must be a request in PEM"),
        (b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n", "must be a request in PEM"),
        (request() + b"\n" * LONGEST, "is longer than"),
        (key_bytes(new_key()), "has a private key in it"),
    ],
)
def test_a_request_that_is_not_as_it_must_be_is_refused(tmp_path, data, told):
    (tmp_path / "peer.csr").write_bytes(data)
    with pytest.raises(CertificateError, match=told):
        read_request(tmp_path / "peer.csr", "ann")


def test_a_request_with_a_signature_of_another_key_is_refused(tmp_path):
    good = x509.load_pem_x509_csr(request()).public_bytes(serialization.Encoding.DER)
    other = x509.load_pem_x509_csr(request()).public_bytes(serialization.Encoding.DER)
    cut = good.rindex(b"\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02")  # what follows is the signature
    forged = good[:cut] + other[other.rindex(b"\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02") :]
    if len(forged) != len(good):
        forged = good[:-1] + bytes([good[-1] ^ 1])
    text = ssl.DER_cert_to_PEM_cert(forged).replace("CERTIFICATE", "CERTIFICATE REQUEST")
    (tmp_path / "peer.csr").write_text(text)
    with pytest.raises(CertificateError, match="signature"):
        read_request(tmp_path / "peer.csr", "ann")


def test_no_file_that_never_ends_is_read(tmp_path):
    os.mkfifo(tmp_path / "peer.csr")
    with pytest.raises(CertificateError, match="must be a file"):
        read_request(tmp_path / "peer.csr", "ann")


def test_what_else_a_request_asks_for_is_ignored(authority, tmp_path):
    wishes = [
        (x509.BasicConstraints(ca=True, path_length=None), True),
        (x509.SubjectAlternativeName([x509.UniformResourceIdentifier("pushcen://other/eve")]), False),
        (x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"x" * 1000), True),
    ]
    (tmp_path / "peer.csr").write_bytes(request(extensions=wishes))
    folder = authority.sign("ann", read_request(tmp_path / "peer.csr", "ann"))
    made = read_certificate(folder / "peer.pem")
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == [
        f"pushcen://{authority.network.fingerprint}/ann"
    ]
    assert len(made.extensions) == 3


def test_a_key_is_for_one_name_and_not_used_again_once_it_was_revoked(authority):
    key = new_key().public_key()
    authority.sign("ann", key)
    with pytest.raises(CertificateError, match="is ann's already"):
        authority.sign("bob", key)
    with pytest.raises(CertificateError, match="the authority's own"):
        authority.sign("bob", authority.key.public_key())
    authority.revoke("ann")
    with pytest.raises(CertificateError, match="was revoked"):
        authority.sign("ann", key)
    authority.sign("ann", new_key().public_key())


def test_the_answer_does_not_go_beside_another_key(authority):
    authority.issue("ann")
    with pytest.raises(CertificateError, match="has another key in it"):
        authority.sign("ann", new_key().public_key())
    authority.sign("ann", read_key(authority.folder / "ann" / "peer.key").public_key())
    assert Certified(authority.folder / "ann").name == "ann"


def test_a_site_asks_again_with_the_key_that_it_has_and_for_its_own_name(authority, tmp_path):
    site = tmp_path / "site"
    first = make_request(site, "ann")
    authority.sign("ann", read_request(site / "peer.csr", "ann"))
    take_home(authority, "ann", site)
    assert make_request(site) == first
    with pytest.raises(CertificateError, match="is ann's"):
        make_request(site, "bob")
    with pytest.raises(CertificateError, match="name: is needed"):
        make_request(tmp_path / "empty")
    assert not (tmp_path / "empty").exists()
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "peer.key").write_bytes(key_bytes(ec.generate_private_key(ec.SECP384R1())))
    with pytest.raises(CertificateError, match="ECDSA P-256"):
        make_request(tmp_path / "odd", "ann")


def renewed(authority, folder, name="ann", key=None, days=365.0, start=None):
    """Put another certificate into a peer's folder."""
    key = key or read_key(folder / "peer.key")
    made = make_certificate(
        key.public_key(), authority.root, authority.key, authority.network.fingerprint, name, days, start=start
    )
    (folder / "peer.pem").write_bytes(pem(made))
    return made


def test_a_peer_takes_a_new_certificate_over_and_keeps_the_old_one_until_the_new_one_is_whole(authority, tmp_path):
    folder = authority.issue("ann")
    ann = Certified(folder)
    before, until_when = ann.serial, ann.until
    assert not ann.renew()
    made = renewed(authority, folder, days=400)
    assert ann.renew()
    assert not ann.renew()
    assert (ann.serial, ann.until) == (made.serial_number, made.not_valid_after_utc)
    assert ann.until > until_when
    assert ann.serial != before
    assert ann.sign({"kind": "x"}).certificate == der(made)
    key = new_key()  # a new key, too: of the two files one is there before the other
    another = renewed(authority, folder, key=key)
    with pytest.raises(CertificateError, match=r"peer\.key is not the key"):
        ann.renew()
    (folder / "peer.key").write_bytes(key_bytes(key))
    assert ann.renew()
    assert ann.serial == another.serial_number
    whole = (folder / "peer.pem").read_bytes()
    (folder / "peer.pem").write_bytes(whole[:300])
    with pytest.raises(CertificateError, match="must be a certificate in PEM"):
        ann.renew()
    assert ann.serial == another.serial_number


def test_a_peer_takes_over_nobody_elses_certificate_and_none_out_of_its_time(authority, tmp_path):
    folder = authority.issue("ann")
    ann, before = Certified(folder), Certified(folder).serial
    renewed(authority, folder, name="bob")
    with pytest.raises(CertificateError, match="is bob's, not ann's"):
        ann.renew()
    renewed(authority, folder, days=10, start=utc() - datetime.timedelta(days=30))
    with pytest.raises(CertificateError, match="a certificate that holds from"):
        ann.renew()
    other = Authority.found(tmp_path / "b", "wards", ["ann"])
    renewed(other, folder)
    with pytest.raises(CertificateError, match="another authority"):
        ann.renew()
    assert ann.serial == before
    assert not Insecure("ann", ("ann",)).renew()


def test_what_ends_first_counts(tmp_path):
    authority = Authority.found(tmp_path / "a", "wards", ["ann"], days=20)
    ann = Certified(authority.issue("ann"))
    assert ann.until == authority.root.not_valid_after_utc
    assert fingerprint_of(authority.root.public_key()) != fingerprint_of(new_key().public_key())


def test_a_revoked_peer_comes_back_with_a_new_certificate_and_no_restart(tmp_path):
    async def story():
        world = World(tmp_path, ("p0", "p1"), pause=0.02)
        await world.start("p0", "p1")
        await until(lambda: world.node("p0").members.all["p1"].record is not None and world.events("p0") > 2)
        world.node("p0").me.keep(world.authority.revoke("p1"))
        refusals = world.node("p0").metrics.refusals
        await until(lambda: refusals.labels("certificate")._value.get() > 0)
        got = world.node("p0").metrics.received.labels("news")._value.get()
        made = renewed(world.authority, world.certs("p1"), "p1")
        await until(lambda: world.node("p1").identity.serial == made.serial_number)
        await until(lambda: world.node("p0").metrics.received.labels("news")._value.get() > got + 3)
        member = world.node("p0").members.all["p1"]
        await until(lambda: member.record.certificate == der(made))  # it has signed where it listens again
        assert world.node("p1").peer.boot == 1
        assert await shown(world, "p0", "p1") == der(made)
        await world.check()

    run(story())


def test_a_peer_that_only_dials_out_comes_back_with_a_new_certificate_too(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.05)
        await open_and_hidden(world, ("p0", "p1"), ("p2",))
        await until(lambda: all(news(world.node(name)) > 1 for name in world.names))
        record = world.authority.revoke("p2")
        for name in ("p0", "p1"):
            world.node(name).me.keep(record)
        refusals = [world.node(name).metrics.refusals.labels("certificate")._value for name in ("p0", "p1")]
        await until(lambda: all(count.get() > 0 for count in refusals))
        made = renewed(world.authority, world.certs("p2"), "p2")
        await until(lambda: world.node("p2").identity.serial == made.serial_number)
        got = {name: news(world.node(name)) for name in world.names}
        await until(lambda: all(news(world.node(name)) > got[name] + 3 for name in world.names))
        record = lambda: getattr(world.node("p0").members.all.get("p2"), "record", None)  # noqa: E731
        await until(lambda: record() is not None and record().certificate == der(made))
        assert world.node("p2").peer.boot == 1
        await world.check()

    run(story())


async def shown(world, caller, callee):
    """Return the certificate that a peer shows to who calls it now."""
    import asyncio

    folder = world.certs(caller)
    context = ssl.create_default_context(cafile=str(folder / "authority.pem"))
    context.load_cert_chain(folder / "peer.pem", folder / "peer.key")
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    host, port = world.addresses[callee].split(":")
    _, writer = await asyncio.open_connection(host, int(port), ssl=context, server_hostname="x")
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return found


def tells(line):
    return line.message == "something is wrong" and line.fields["kind"] == "certificate"


def test_a_certificate_that_ends_soon_is_told_once_a_day_and_measured(tmp_path, caplog):
    async def story():
        world = World(tmp_path, ("p0",))
        renewed(world.authority, world.certs("p0"), "p0", days=29.5)
        await world.start("p0")
        await until(lambda: any(map(tells, caplog.records)))
        node = world.node("p0")
        ends = node.metrics.certificate._value.get()
        assert ends == node.identity.until.timestamp()
        renewed(world.authority, world.certs("p0"), "p0", days=300)
        await until(lambda: node.metrics.certificate._value.get() > ends)
        await world.stop()

    with caplog.at_level("INFO"):
        run(story())
    told = list(filter(tells, caplog.records))
    assert len(told) == 1
    assert told[0].fields["text"] == "its certificate ends in 29 days"
    assert [line.fields["until"] for line in caplog.records if line.message == "a new certificate"]
