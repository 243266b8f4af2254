"""How a peer is, as other members may ask it: who is answered, with what, and what is believed of an answer."""

import asyncio
import json
import sys
import time
import urllib.error
import urllib.request

import pytest

from pushcen.cli.watch import page_of_peer
from pushcen.errors import NetworkError, OptionError
from pushcen.runtime import views
from pushcen.runtime.facts import MOST, FactLog
from pushcen.runtime.local import free_ports
from pushcen.runtime.looking import RemotePeer, read_view
from pushcen.runtime.members import hosts_of
from pushcen.watch import Watch
from pushcen.watch.asking import first_look

from .world import World, run, until


async def looked(world, caller, callee):
    """Return what a member sees of a peer, asking it once."""
    peer = RemotePeer(world.identity(caller), world.addresses[callee], timeout=60)
    try:
        return await peer.look()
    finally:
        await peer.close()


def test_a_member_sees_what_happens_and_nothing_of_the_data(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.05, evaluate_every=1)
        nodes = await world.start("p0", "p1", "p2")
        await until(
            lambda: all(any(fact[0] == "m" and fact[4] for fact in node.seen.facts.after(0)[0]) for node in nodes)
        )
        seen = await looked(world, "p2", "p0")
        assert (seen.name, seen.founded, seen.measure.name) == ("p0", world.node("p0").generation.mass, "accuracy")
        assert {one.name for one in seen.status.neighbours} == {"p1", "p2"}
        kinds = {fact[0] for fact in seen.facts}
        assert {"p", "m", "s", "a"} <= kinds
        merged = next(fact for fact in seen.facts if fact[0] == "m" and fact[4])
        assert set(merged[4][::3]) <= {"p1", "p2"}
        assert 0 < sum(merged[4][1::3]) <= 10_000
        said = json.loads(world_view(world, "p0"))
        assert set(said) <= {"life", "last", "now", "founded", "held", "waiting", "metric", "status", "facts"}
        assert "samples" not in str(said)

    run(story())


def world_view(world, name):
    driver = world.drivers[name]
    return views.Views(driver.upkeep, driver.me, driver.shared).view()


def test_words_of_this_machine_stay_here_but_on_its_own_page(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1"))
        [node] = await world.start("p0", live=False, join=[])
        node.seen.event_failed("cannot read /home/ann/patients.csv")
        node.seen.waits_for = "/data: no space left"
        assert "patients" not in world_view(world, "p0").decode()
        assert "/data" not in world_view(world, "p0").decode()
        driver = world.drivers["p0"]
        assert b"patients" in views.Views(driver.upkeep, driver.me, driver.shared).view(inside=True)

    run(story())


def test_only_what_is_new_is_told_and_all_of_it_after_a_restart(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1"))
        [node] = await world.start("p0", live=False, join=[])
        peer = RemotePeer(world.identity("p1"), world.addresses["p0"], timeout=60)
        first = await peer.look()
        node.seen.facts.pushed("p1", 7, "news")
        assert [fact[:1] + fact[2:] for fact in (await peer.look()).facts] == [["s", "p1", 7, "news"]]
        await world.stop("p0")
        with pytest.raises(NetworkError, match="UNAVAILABLE"):
            await peer.look()
        await world.start("p0", live=False, join=[])
        again = await peer.look()
        await peer.close()
        assert again.life != first.life
        assert [fact[0] for fact in again.facts] == ["p"]

    run(story())


def test_who_is_revoked_or_a_stranger_is_not_answered(tmp_path):
    async def story():
        world = World(tmp_path / "one", names=("p0", "p1"))
        other = World(tmp_path / "other", names=("p0", "p1"))
        [node] = await world.start("p0", live=False, join=[])
        assert (await looked(world, "p1", "p0")).name == "p0"
        stranger = RemotePeer(other.identity("p1"), world.addresses["p0"])
        with pytest.raises(NetworkError):
            await stranger.look()
        await stranger.close()
        record = world.authority.revoke("p1")
        node.identity.revoke(record)
        with pytest.raises(NetworkError, match="UNAUTHENTICATED"):
            await looked(world, "p1", "p0")

    run(story())


def test_who_asks_too_often_is_turned_away(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1"), calls_per_second=0.01)
        await world.start("p0", live=False, join=[])
        peer = RemotePeer(world.identity("p1"), world.addresses["p0"], timeout=60)
        with pytest.raises(NetworkError, match="RESOURCE_EXHAUSTED: p1 calls too often"):
            await peer.look()  # which asks twice, for the name and then by it
        await peer.close()

    run(story())


def test_a_peer_may_show_nothing(tmp_path):
    async def story():
        world = World(tmp_path, names=("p0", "p1"), watched=False)
        await world.start("p0", live=False, join=[])
        with pytest.raises(NetworkError, match="shows nothing"):
            await looked(world, "p1", "p0")

    run(story())


def test_a_member_that_calls_itself_by_another_name_is_not_believed(tmp_path, monkeypatch):
    async def story():
        world = World(tmp_path, names=("ann", "bob", "eve"))
        await world.start("eve", live=False, join=[])
        true = views.Views.view

        def lie(self, *asked, **how):
            said = json.loads(true(self, *asked, **how))
            said["status"]["peer"] = "ann/1"
            return json.dumps(said).encode()

        monkeypatch.setattr(views.Views, "view", lie)
        with pytest.raises(NetworkError):
            await looked(world, "bob", "eve")

    run(story())


def test_a_page_of_several_peers_is_written_by_who_asks_them(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.05, evaluate_every=1)
        nodes = await world.start("p0", "p1", "p2")
        await until(
            lambda: all(any(fact[0] == "m" and fact[4] for fact in node.seen.facts.after(0)[0]) for node in nodes)
        )
        words = ["watch", world.addresses["p0"], world.addresses["p1"], "--certs", str(world.certs("p2"))]
        words += ["--folder", str(tmp_path / "kept"), "--export", str(tmp_path / "page.html")]
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "pushcen", *words)
        assert await process.wait() == 0

    run(story())
    [update] = Watch([tmp_path / "kept"]).whole()
    assert update["facts"]["head"]["names"] == ["p0", "p1", "p2"]
    assert [peer["asked"] for peer in update["facts"]["peers"]] == [True, True, False]
    merges = [event for event in update["events"] if event[0] == "m" and event[5]]
    assert {event[2] for event in merges} == {0, 1}
    assert update["rows"][-1]["accuracy"] > 0
    assert "p1" in (tmp_path / "page.html").read_text()


def test_one_that_only_dials_out_is_asked_through_its_host(tmp_path, caplog):
    async def story():
        world = World(tmp_path, names=("p0", "p1", "p2", "p3"), pause=0.05, evaluate_every=1)
        await world.start("p0", "p1")
        await world.start("p2", "p3", listen="", join=[world.addresses["p0"], world.addresses["p1"]])
        hidden = [world.node("p2"), world.node("p3")]
        await until(
            lambda: all(any(fact[0] == "m" and fact[4] for fact in node.seen.facts.after(0)[0]) for node in hidden)
        )
        await until(
            lambda: {"p2", "p3"} <= {one.name for one in world.node("p0").members.online() if hosts_of(one.address)}
        )
        asked = [RemotePeer(world.identity("p1"), world.addresses["p0"], timeout=60)]
        assert await asyncio.to_thread(first_look, asked, tmp_path / "kept") == {}

    run(story())
    [update] = Watch([tmp_path / "kept"]).whole()
    names = update["facts"]["head"]["names"]
    peers = {peer["name"]: peer for peer in update["facts"]["peers"]}
    assert {name: peer["asked"] for name, peer in peers.items()} == {"p0": True, "p1": False, "p2": True, "p3": True}
    assert peers["p2"]["address"] == "p2 (dials out)"
    assert "Traceback" not in caplog.text
    assert {names[event[2]] for event in update["events"] if event[0] == "m"} >= {"p0", "p2", "p3"}


GOOD = {
    "life": 1, "last": 1, "now": 5.0, "founded": "10", "held": "5", "waiting": "0", "status": {"peer": "ann/1"},
    "facts": [],
}  # fmt: skip
HOSTILE = {
    "no facts": {"facts": None},
    "too many facts": {"facts": [["f", 1.0]] * 501},
    "a fact of no kind": {"facts": [["q", 1.0]]},
    "a fact whose kind is a list": {"facts": [[["m"], 1.0]]},
    "a fact that is short": {"facts": [["s", 1.0, "bob"]]},
    "a time that is text": {"facts": [["f", "now"]]},
    "a time without end": {"facts": [["f", 1e300]]},
    "a name that is HTML": {"facts": [["s", 1.0, "<b>", 1, "news"]]},
    "any name": {"status": {"peer": "any"}},
    "no name": {"status": {}},
    "mass as a number": {"held": 5},
    "mass below zero": {"held": "-5"},
    "much mass": {"founded": "9" * 100},
    "a share above all": {"facts": [["m", 1.0, 1, "5", ["bob", 10_001, 0], None, None]]},
    "half a model": {"facts": [["m", 1.0, 1, "5", ["bob"], None, None]]},
    "an endless score": {"facts": [["m", 1.0, 1, "5", [], float("inf"), None]]},
    "a score that is text": {"facts": [["m", 1.0, 1, "5", [], "good", None]]},
    "an outcome in capitals": {"facts": [["s", 1.0, "bob", 1, "<script>"]]},
    "a life below zero": {"life": -1},
    "true as a number": {"last": True},
    "no level": {"facts": [["w", 1.0, "disk", "<b>"]]},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_is_refused_whole(name):
    assert read_view(json.dumps(GOOD).encode()).name == "ann"
    with pytest.raises(NetworkError, match="what cannot be"):
        read_view(json.dumps(GOOD | HOSTILE[name]).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b"{" * 10_000, b"[" * 100_000, b'{"status": 3}', b"9" * 10_000])
def test_what_is_no_answer_is_refused(data):
    with pytest.raises(NetworkError, match="what cannot be"):
        read_view(data)


def test_facts_are_bounded_and_numbered():
    facts = FactLog(clock=iter(range(10**6)).__next__)
    for _ in range(MOST + 5):
        facts.visited("joins")
    kept, last = facts.after(0)
    assert (len(kept), last, kept[0][1]) == (MOST, MOST + 5, 5)
    assert facts.after(MOST + 3) == (kept[-2:], MOST + 5)
    assert facts.after(0, most=10) == (kept[:10], 15)
    assert facts.after(10**9)[0] == kept, "a number of another process's"


def test_one_caller_that_is_refused_does_not_fill_them():
    facts = FactLog(clock=lambda: 5.0)
    for _ in range(1000):
        facts.refused("eve", "rate")
    assert facts.after(0) == ([["r", 5.0, "eve", "rate"]], 1)


def test_whatever_a_peer_notes_of_itself_can_be_read():
    facts = FactLog(clock=lambda: 5.0)
    facts.trained(7, 1 << 40, [(f"p{at}", 10, 0.5) for at in range(300)], 1e30, float("nan"))
    facts.failed()
    facts.moved("bob", 0.5)
    facts.pushed("bob", 9, "doubt")
    facts.arrived("bob", 9, news=False)
    facts.refused("bob/7", "rate")
    facts.refused("", "certificate")
    facts.warned("refused by bob", "warning")
    facts.visited("says farewell")
    noted, _ = facts.after(0)
    assert read_view(json.dumps(GOOD | {"facts": noted}).encode()).facts == noted
    assert noted[0][-2:] == [1e30, None]


def ask(address, path="", **headers):
    """Return status and body of an answer over HTTP; of a stream, its first event that has facts of peers."""
    try:
        with urllib.request.urlopen(urllib.request.Request(address + path, headers=headers), timeout=60) as answer:
            if path != "stream":
                return answer.status, answer.read()
            while not (line := answer.readline()).startswith(b"data: ") or b'"peers"' not in line:
                pass
            return answer.status, json.loads(line[6:])
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def wait_for(address):
    """Wait until somebody listens."""
    end = time.monotonic() + 300
    while True:
        try:
            return ask(address, Host="127.0.0.1")
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.1)


def test_a_peer_serves_its_own_page_on_this_machine(tmp_path):
    pytest.importorskip("starlette", reason="needs the extra watch")

    async def story():
        world = World(tmp_path, names=("p0", "p1"), pause=0.05)
        [port] = free_ports(1)
        shown = page_of_peer(f"127.0.0.1:{port}", None)
        await world.start("p1", join=[])
        await world.start("p0", shown=shown)
        address = f"http://127.0.0.1:{port}/"
        assert (await asyncio.to_thread(wait_for, address))[0] == 200
        status, [update] = await asyncio.to_thread(ask, address, "stream")
        assert status == 200
        assert update["facts"]["peers"][0]["name"] == "p0"
        assert update["facts"]["head"]["seconds"] is True
        assert (await asyncio.to_thread(ask, address, Host="evil.example"))[0] == 400

    run(story())


def test_elsewhere_than_on_this_machine_it_needs_a_token(tmp_path):
    pytest.importorskip("starlette", reason="needs the extra watch")
    for address in ("0.0.0.0:8080", "192.0.2.7:8080", "ward-3:8080", "[::]:8080"):
        with pytest.raises(OptionError, match="--http-token FILE"):
            page_of_peer(address, None)
    (tmp_path / "short").write_text("secret\n")
    with pytest.raises(OptionError, match="must have 16 letters or more"):
        page_of_peer("0.0.0.0:8080", tmp_path / "short")
    with pytest.raises(OptionError, match="is for --http"):
        page_of_peer("", tmp_path / "short")
    (tmp_path / "token").write_text("0123456789abcdef\n")

    async def story():
        world = World(tmp_path / "world", names=("p0", "p1"))
        [port] = free_ports(1)
        await world.start("p0", live=False, join=[], shown=page_of_peer(f"0.0.0.0:{port}", tmp_path / "token"))
        address = f"http://127.0.0.1:{port}/"
        assert (await asyncio.to_thread(wait_for, address))[0] == 401
        right = {"Authorization": "Bearer 0123456789abcdef"}
        wrong = ("Bearer 0123456789abcdeg", "Basic \xff", "Basic /w==", "Basic", "Bearer", "Digest 0123456789abcdef")
        for header, status in ((right, 200), ({}, 401), *(({"Authorization": word}, 401) for word in wrong)):
            assert (await asyncio.to_thread(lambda header=header: ask(address, **header)))[0] == status
        assert (await asyncio.to_thread(lambda: ask(address, Host="evil.example", **right)))[0] == 400

    run(story())
