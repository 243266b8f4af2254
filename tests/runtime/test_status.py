"""`pushcen status`: how a peer is, what is wrong with it and why, from a folder in which nothing is trusted."""

import asyncio
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pushcen.errors import LedgerError, NetworkError
from pushcen.methods import Independent, PushCen
from pushcen.protocol import Peer
from pushcen.runtime.health import Problem, level_of, problems
from pushcen.runtime.local import LocalNetwork
from pushcen.runtime.rows import scores
from pushcen.runtime.sightings import Sightings
from pushcen.runtime.state_folder import StateFolder
from pushcen.runtime.status import NAME, NeighbourStatus, Status, read_status

from .test_commands import TINY, pushcen
from .world import World, run, until, wait_until

DAY = 86_400.0
NOW = 1_000_000.0
ANN = NeighbourStatus("ann", "ann:7000", "answers", called=NOW - 5, pushed=NOW - 5, took=NOW - 9)
WELL = Status(
    time=NOW - 2, started=NOW - 9000, phase="training", peer="bob/1", boot=1, address="bob:7000", held=1.0, events=9,
    trained=NOW - 3, seconds=1.0, received=NOW - 5, certificate_end=NOW + 200 * DAY, neighbours=[ANN],
)  # fmt: skip
QUIET = replace(WELL, received=NOW - 2000)


def kinds(status, now=NOW):
    return {one.kind: one.level for one in problems(status, now)}


def test_a_peer_that_is_well_has_no_problem():
    assert problems(WELL, NOW) == []
    assert level_of([]) == "ok"


@pytest.mark.parametrize(
    ("status", "kind", "level", "text"),
    [
        (Status(), "running", "warning", "never said"),
        (replace(WELL, ended="stopped"), "running", "critical", "was stopped 2 s ago"),
        (replace(WELL, ended="listen = x: cannot be"), "running", "critical", "listen = x: cannot be"),
        (replace(WELL, time=NOW - 600), "running", "critical", "said nothing for 10 min"),
        (replace(WELL, certificate_end=NOW + 29.5 * DAY), "certificate", "warning", "ends in 29 days"),
        (replace(WELL, certificate_end=NOW - 3 * DAY), "certificate", "critical", "ended 3.0 days ago"),
        (replace(WELL, revoked=True), "certificate", "critical", "was revoked"),
        (replace(WELL, certificate_wrong="peer.pem: no"), "new certificate", "warning", "peer.pem: no"),
        (replace(WELL, waits_for="no space left"), "disk", "critical", "no space left"),
        (replace(WELL, failed=NOW - 1, failure="loss is nan"), "event", "warning", "loss is nan"),
        (replace(WELL, trained=NOW - 3000), "event", "warning", "no compute event was finished for 50 min"),
        (replace(QUIET, neighbours=[]), "alone", "critical", "it knows nobody"),
        (replace(QUIET, neighbours=[], silent={"x:1": "refused"}), "alone", "critical", "nobody answers: x:1: refused"),
        (
            replace(QUIET, neighbours=[], silent={"x:1": "UNAUTHENTICATED: revoked"}),
            "alone", "critical", "others refuse its certificate",
        ),
        (replace(QUIET, neighbours=[replace(ANN, called=0.0)]), "alone", "critical", "nobody has ever called it"),
        (
            replace(QUIET, neighbours=[replace(ANN, called=0.0)], address=""),
            "alone", "critical", "it only dials out, and none of ann hosts it",
        ),
        (QUIET, "alone", "critical", "others answer (ann), and push nothing here"),
        (replace(QUIET, refusals={"payload": 7, "busy": 2}), "alone", "critical", "was refused: payload (7)"),
        (replace(QUIET, phase="starting"), "alone", "critical", "waits to begin"),
        (replace(QUIET, held=0.0), "mass", "critical", "holds no mass"),
        (
            replace(QUIET, neighbours=[replace(ANN, state="refuses", why="method.clusters = 8 there, 4 here")]),
            "alone", "critical", "refused by ann: method.clusters = 8 there, 4 here",
        ),
        (replace(WELL, phase="leaving", leaving=NOW - 3000), "leaving", "warning", "nobody takes the mass"),
        (
            replace(
                WELL, phase="leaving", leaving=NOW - 3000, held=0.0,
                neighbours=[ANN, replace(ANN, name="bob", state="silent", why="refused", awaited=True)],
            ),
            "leaving", "warning", "leaving for 50 min: not confirmed by bob (refused)",
        ),
        (replace(QUIET, certificate_end=NOW - 3 * DAY), "alone", "critical", "its certificate ended"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_the_likely_cause(status, kind, level, text):
    found = problems(status, NOW)
    assert kinds(status)[kind] == level
    assert text in next(one.text for one in found if one.kind == kind)
    assert all(one.hint for one in found)
    assert found == sorted(found, key=lambda one: one.level != "critical")


@pytest.mark.parametrize(
    "status",
    [
        replace(QUIET, phase="done"),  # whoever has finished waits for nothing
        replace(QUIET, phase="leaving", leaving=NOW - 100),
        replace(QUIET, exchanges=False),  # its method sends nothing
        replace(QUIET, seconds=1500.0, trained=NOW - 1000),  # compute events are long: so is the wait for others
        replace(QUIET, quiet_after=3000.0),
        replace(WELL, ended="left", time=NOW - DAY),
        replace(WELL, held=0.0, received=NOW - 100),
    ],
)
def test_what_is_as_it_should_be_is_no_problem(status):
    assert problems(status, NOW) == []


def test_a_status_is_read_as_it_was_written(tmp_path):
    StateFolder(tmp_path).close()
    WELL.write(tmp_path)
    assert read_status(tmp_path) == WELL


@pytest.mark.parametrize(
    "said",
    [
        b"", b"null", b"[]", b"{", b"\xff\xfe", b'"' + 100_000 * b"x", 100_000 * b"[", b'{"time": 1e999, "boot": NaN}',
        b'{"time": "soon", "boot": 1.5, "held": [], "neighbours": {"a": 1}, "silent": [1], "refusals": {"x": "y"}}',
        b'{"time": -5, "boot": -1, "events": true, "neighbours": [1, null, {"name": 5}], "join": "x"}',
        b'{"held": 1' + 400 * b"0" + b', "boot": 1' + 400 * b"0" + b"}",
        b'{"peer": "' + 2_000_000 * b"x" + b'"}',
        json.dumps({"peer": "\x1b]0;gone\x07\x1b[2J[red]", "neighbours": [{"name": "\x1b[31m"}] * 5000}).encode(),
    ],
)  # fmt: skip
def test_nothing_in_a_status_file_is_trusted(tmp_path, said):
    StateFolder(tmp_path).close()
    (tmp_path / NAME).write_bytes(said)
    (tmp_path / "metrics.jsonl").write_bytes(said + b'\n{"accuracy": 0.5}\n{"accuracy": 1' + 400 * b"0" + b"}\n{}")
    found = read_status(tmp_path)
    assert (found.time, found.boot, found.events, found.held) == (0.0, 0, 0, 0.0)
    assert len(found.neighbours) <= 256
    for words in ((), ("--json",)):
        shown = pushcen("status", tmp_path, *words)
        assert shown.exit_code == 1, shown.output
        assert "\x1b" not in shown.output
        assert "Traceback" not in shown.output
    assert scores(tmp_path)["best"] == 0.5


@pytest.mark.parametrize("value", ["5", '"x"', "[]", '{"peer": 5, "held": "much", "boot": []}', 10_000 * "["])
def test_nothing_in_a_ledger_is_trusted(tmp_path, value):
    store = StateFolder(tmp_path)
    store._db.execute("INSERT INTO state VALUES ('peer', ?)", (value,))
    store.close()
    shown = pushcen("status", tmp_path)
    assert shown.exit_code in (1, 2)
    assert shown.exception is None or isinstance(shown.exception, SystemExit)


def test_what_is_no_state_folder_is_told(tmp_path):
    with pytest.raises(LedgerError, match="no state folder of a peer"):
        read_status(tmp_path)
    assert pushcen("status", tmp_path / "nowhere").exit_code == 2
    os.mkfifo(tmp_path / "status.json")
    os.mkfifo(tmp_path / "metrics.jsonl")
    StateFolder(tmp_path).close()
    assert pushcen("status", tmp_path).exit_code == 1  # and does not wait for ever


def contents(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_the_status_of_real_peers_running_killed_and_stopped(tmp_path):
    settings = {"runtime.start_with": 1, "runtime.pause": 0.05, "runtime.evaluate_every": 1}
    network = LocalNetwork(tmp_path, TINY, 2, None, settings)
    network.start()
    try:
        wait_until(lambda: min(map(network.events, network.names)) >= 5, lambda: network.last_words("p0"))
        wait_until(lambda: pushcen("status", network.state("p0")).exit_code == 0, lambda: network.last_words("p0"))
        known = lambda: read_status(network.state("p0")).neighbours  # noqa: E731
        wait_until(lambda: any(one.called and one.pushed and one.took for one in known()))
        shown = json.loads(pushcen("status", network.state("p0"), "--json").output)
        assert (shown["state"], shown["running"], shown["problems"], shown["phase"]) == ("ok", True, [], "training")
        assert (shown["peer"], shown["network"], shown["boot"]) == ("p0/1", "local", 1)
        assert shown["best"] >= shown["score"] > 0
        assert 364 < (shown["certificate_end"] - time.time()) / DAY <= 365
        [p1] = shown["neighbours"]
        assert (p1["name"], p1["state"]) == ("p1", "answers")
        network.kill("p0")
        shown = pushcen("status", network.state("p0"))  # at once: nobody holds its folder
        assert (shown.exit_code, "it was killed" in shown.output) == (2, True)
        killed = read_status(network.state("p0"))
        assert kinds(killed, killed.time + 120) == {"running": "critical"}
        assert kinds(killed, killed.time + 2) == {}
    finally:
        network.stop()
    before = contents(network.state("p1"))
    stopped = pushcen("status", network.state("p1"))
    assert contents(network.state("p1")) == before  # it only reads
    assert stopped.exit_code == 2
    assert "it was stopped" in stopped.output
    assert "p1/1" in stopped.output


def test_a_state_folder_of_an_earlier_version_is_shown_by_its_ledger(tmp_path):
    async def story():
        world = World(tmp_path, ("p0", "p1"), pause=0.02)
        await world.start("p0", "p1")
        await until(lambda: world.events("p0") >= 3)
        await world.stop()

    run(story())
    (tmp_path / "p0" / NAME).unlink()
    before = contents(tmp_path / "p0")
    shown = pushcen("status", tmp_path / "p0")
    assert shown.exit_code == 1
    assert "p0/1" in shown.output
    assert "pushcen, " in shown.output
    assert contents(tmp_path / "p0") == before


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become somebody else")
@pytest.mark.parametrize("said", [True, False])
def test_who_may_only_read_sees_it(said):
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        StateFolder(state).close()
        if said:
            WELL.write(state)
        Path(folder).chmod(0o755)
        os.seteuid(65534)
        try:
            assert read_status(state).peer == ("bob/1" if said else "")
        finally:
            os.seteuid(0)
        state.chmod(0o700)
        os.seteuid(65534)
        try:
            refused = pushcen("status", state)
        finally:
            os.seteuid(0)
        assert (refused.exit_code, "must be able to read" in refused.stderr) == (2, True)


def told(caplog):
    return [line.fields for line in caplog.records if line.message == "something is wrong"]


def test_a_peer_that_nobody_answers_says_so_and_that_all_is_well_again(tmp_path, caplog):
    async def story():
        world = World(tmp_path, ("p0", "p1"), pause=0.02, quiet_after=1.0)
        begins = asyncio.create_task(world.start("p0"))  # a founder waits for those it joins
        await until(lambda: any(one["kind"] == "alone" for one in told(caplog)))
        await asyncio.gather(begins, world.start("p1"))
        await until(lambda: any(line.message == "well again" for line in caplog.records))
        await world.check()

    with caplog.at_level("INFO"):
        run(story())
    [first, *_] = [one for one in told(caplog) if one["kind"] == "alone"]
    assert first["text"].startswith("it waits to begin, for ")
    assert "nobody answers: 127.0.0.1:" in first["text"]
    assert "firewall" in first["hint"]


def test_a_peer_that_is_set_up_in_another_way_says_in_which(tmp_path, caplog):
    async def story():
        world = World(tmp_path, ("p0", "p1"), ("p0",), pause=0.02, quiet_after=1.0)
        await world.start("p0", join=())
        await world.start("p1", method=PushCen(clusters=8))
        node = world.node("p1")
        await until(lambda: {"alone", "mass", "refused by p0"} <= {one["kind"] for one in told(caplog)})
        await until(lambda: node.metrics.problems.labels("critical")._value.get() == 2)
        await world.stop()

    with caplog.at_level("INFO"):
        run(story())
    texts = {one["kind"]: one["text"] for one in told(caplog) if one["peer"] == "p1"}
    assert texts["refused by p0"] == "p0 refuses it: method.clusters = 4 there, 8 here"
    assert "refused by p0: method.clusters = 4 there, 8 here" in texts["alone"]
    assert "holds no mass" in texts["mass"]


def test_a_peer_that_was_revoked_says_so(tmp_path, caplog):
    async def story():
        world = World(tmp_path, ("p0", "p1"), pause=0.02)
        await world.start("p0", "p1")
        await until(lambda: world.events("p1") > 1)
        world.node("p1").me.keep(world.authority.revoke("p1"))
        await until(lambda: any(one["kind"] == "certificate" for one in told(caplog)))
        await world.stop()

    with caplog.at_level("INFO"):
        run(story())
    assert "was revoked" in told(caplog)[0]["text"]


def test_a_peer_of_a_method_that_sends_nothing_is_well_alone(tmp_path):
    async def story():
        world = World(tmp_path, ("p0",), pause=0.02, quiet_after=0.5)
        await world.start("p0", method=Independent())
        await until(lambda: world.events("p0") > 5)
        await asyncio.sleep(6.0)
        assert problems(read_status(tmp_path / "p0"), time.time()) == []
        await world.stop()

    run(story())


def test_an_error_at_the_start_is_in_the_status(tmp_path):
    async def story():
        world = World(tmp_path, ("p0", "p1"))
        await world.start("p0", join=())
        with pytest.raises(NetworkError):
            await world.start("p1", method=PushCen(clusters=8))
        await world.stop()

    run(story())
    [problem] = problems(read_status(tmp_path / "p1"), time.time())
    assert isinstance(problem, Problem)
    assert "ended with an error: p0/1 at 127" in problem.text


def test_what_is_remembered_is_bounded():
    seen = Sightings(clock=lambda: NOW)
    for number in range(5000):
        seen.called.note(f"p{number}")
        seen.unanswered(f"p{number}", "no")
        seen.refused(f"p{number}", "other")
    assert len(seen.called) == len(seen.silent) == len(seen.differs) == 256
    assert "p4999" in seen.called


def test_a_watch_goes_on_until_it_is_ended(tmp_path):
    StateFolder(tmp_path / "state").close()
    WELL.write(tmp_path / "state")
    command = [sys.executable, "-m", "pushcen", "status", str(tmp_path / "state"), "--json", "--watch"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    lines = [json.loads(process.stdout.readline()) for _ in range(2)]
    process.terminate()
    process.wait(30)
    assert lines[0]["peer"] == "bob/1"
    assert lines[1]["now"] > lines[0]["now"]


@pytest.mark.parametrize("command", ["status", "audit"])
def test_monitoring_needs_no_torch(tmp_path, command):
    """Neither by what a peer has said last, nor by its ledger: no torch, no numba, no gRPC."""
    folder = StateFolder(tmp_path)
    folder.commit({"peer": Peer.found("bob").save(), "name": "bob", "network": "n", "about": {}})
    folder.close()
    program = f"import sys\nfrom pushcen.cli import app\ntry:\n    app([{command!r}, sys.argv[1]])\n"
    program += "except SystemExit as ended:\n"
    program += "    print(ended.code, [name for name in ('torch', 'numba', 'grpc') if name in sys.modules])"
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
        assert done.stdout.splitlines()[-1].endswith(" []"), done.stdout + done.stderr
        WELL.write(tmp_path)
