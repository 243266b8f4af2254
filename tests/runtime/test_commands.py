"""The commands of the real network, as a user types them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.request

import pytest
from grpc_health.v1 import health_pb2
from safetensors.torch import load_file
from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.errors import LedgerError
from pushcen.runtime.local import LocalNetwork, free_ports
from pushcen.runtime.security.authority import Authority
from pushcen.runtime.security.identity import Certified
from pushcen.runtime.state_folder import StateFolder, read_state

from .world import LIMIT, World, run, until, wait_until

TINY = "tests.runtime.tasks:tiny"


def pushcen(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def test_certificates_are_made_shown_and_revoked(tmp_path):
    folder = tmp_path / "authority"
    made = pushcen("certs", "init", folder, "--network", "wards", "--founder", "ann", "--founder", "bob")
    assert made.exit_code == 0, made.output
    assert "founded by ann, bob" in made.output
    issued = pushcen("certs", "issue", folder, "ann", "bob", "eve")
    assert issued.exit_code == 0, issued.output
    assert Certified(folder / "eve").name == "eve"
    shown = pushcen("certs", "show", folder)
    assert shown.output.count("yes") == 2  # founders
    revoked = pushcen("certs", "revoke", folder, "eve")
    assert revoked.exit_code == 0
    assert pushcen("certs", "show", folder).output.count("yes") == 3
    assert "founders: ann, bob" in pushcen("certs", "show", folder / "ann").output
    again = pushcen("certs", "init", folder, "--founder", "ann")
    assert (again.exit_code, "must be empty" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--listen", "127.0.0.1:0"], "--certs FOLDER: is needed"),
        (["--listen", "nonsense", "--insecure", "ann"], "must be HOST:PORT"),
        (["--listen", "0.0.0.0:0", "--insecure", "ann"], "--insecure is for"),
        (["--listen", "127.0.0.1:0", "--certs", "nowhere"], "nowhere/authority.pem: No such file"),
        (
            ["--listen", "127.0.0.1:0", "--insecure", "ann", "--set", "runtime.patiense=1"],
            "Did you mean runtime.patience",
        ),
        (["--listen", "127.0.0.1:0", "--insecure", "ann", "--set", "method.name=swift"], "needs a fixed graph"),
        (
            ["--listen", "127.0.0.1:0", "--insecure", "ann", "--set", "training.per_client.lr=0.1..1"],
            "training.per_client.lr = '0.1..1': is the simulator's; a peer has a training.lr of its own",
        ),
    ],
)
def test_what_cannot_be_is_told_in_one_line(tmp_path, words, told):
    result = pushcen("peer", TINY, "--state", tmp_path / "state", *words)
    assert result.exit_code == 2, result.output
    assert told in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "name", ["swift", "quantized-push-sum", "rasgp", "d-psgd", "choco", "moniqua", "a2cid2", "dspodfl"]
)
def test_a_method_that_needs_a_graph_is_refused_before_anything_is_made(tmp_path, name):
    """By what is wrong on a real network: a preset's settings of the simulated world do not matter there."""
    pushcen("certs", "init", tmp_path / "authority", "--founder", "ann")
    for words in (
        ["up", "--method", name, "--folder", tmp_path / "up"],
        ["peer", "digits", "--method", name, "--state", tmp_path / "state", "--insecure", "ann"],
        ["refound", tmp_path / "authority", "--to", "127.0.0.1:1", "--set", f"method.name={name}"],
    ):
        result = pushcen(*words)
        assert result.exit_code == 2, result.output
        assert f"method.name = '{name}': needs a fixed graph, which a real network has not" in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"authority"}
    assert Authority.open(tmp_path / "authority").generation().number == 0


def test_up_runs_a_network_whose_references_move(tmp_path):
    folder = tmp_path / "run"
    method = ["method.name=pushcen-lean", "method.renew_after=3", "runtime.start_with=2", "runtime.pause=0.05"]
    settings = [word for setting in method for word in ("--set", setting)]
    done = pushcen("up", TINY, "--peers", 3, "--events", 12, "--folder", folder, *settings)
    assert done.exit_code == 0, done.output
    assert "every quantum is somewhere" in done.output
    states = [read_state(folder / name)["references"] for name in ("p0", "p1", "p2")]
    assert all(generation >= 2 for state in states for generation in [max(row[0] for row in state["held"])])
    owners = [{row[1] for row in state["held"]} for state in states]
    assert len(set.union(*owners)) < sum(map(len, owners))  # some have what others offered


def test_up_runs_a_network_and_leaves_a_run_that_adds_up(tmp_path):
    folder = tmp_path / "run"
    done = pushcen("up", TINY, "--peers", 3, "--events", 6, "--folder", folder, "--set", "runtime.evaluate_every=2")
    assert done.exit_code == 0, done.output
    assert "every quantum is somewhere" in done.output
    summary = json.loads((folder / "summary.json").read_text())
    mass = summary["meters"]["mass"]
    assert mass["exact"]
    assert mass["mass_held"] + mass["mass_under_way"] == pytest.approx(1)
    assert summary["events"] == 18
    from pushcen.runs import Run

    opened = Run.open(folder)
    assert opened.finished
    assert len(opened.series("accuracy")[0]) >= 9
    for figure in ("accuracy", "accuracy_worst_tenth", "bytes_per_push", "bytes_sent", "flops", "steps", "times.run"):
        assert opened.number(figure) > 0, figure
    states = [folder / name for name in ("p0", "p1", "p2")]
    audited = pushcen("audit", *states, "--json")
    assert audited.exit_code == 0, audited.output
    assert json.loads(audited.output)["balanced"]
    missing = pushcen("audit", *states[:2])  # one peer's ledger is not here: that is said
    assert (missing.exit_code, "p2 is a founder" in missing.output) == (1, True)
    out = tmp_path / "model.safetensors"
    exported = pushcen("export", folder / "p0", "--out", out)
    assert exported.exit_code == 0, exported.output
    assert set(load_file(out)) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    store = StateFolder(states[0])  # somebody changes the books: it is found
    state = store.load()["peer"]
    state["sent"] = dict.fromkeys(state["sent"], 0)
    store.commit({"peer": state})
    store.close()
    forged = pushcen("audit", *states)
    assert forged.exit_code == 1
    assert "CANNOT BE" in forged.output


def test_a_peer_shows_its_health_and_its_figures_and_is_audited_while_it_runs(tmp_path):
    network = LocalNetwork(tmp_path, TINY, 2, None, {"runtime.start_with": 1, "runtime.pause": 0.02}, metrics=True)
    network.start()
    try:
        wait_until(lambda: min(map(network.events, network.names)) >= 5, lambda: network.last_words("p0"))
        address = f"http://127.0.0.1:{network.metrics['p0']}/metrics"
        figures = urllib.request.urlopen(address, timeout=LIMIT).read().decode()
        for name in ("payload_bytes_total", "pushes_total", "mass", "mailbox_models", "training_seconds", "accuracy"):
            assert f"pushcen_{name}" in figures
        assert asyncio.run(health(network)) == health_pb2.HealthCheckResponse.SERVING
        audited = pushcen("audit", *(network.state(name) for name in network.names))
        assert audited.exit_code == 0, audited.output
    finally:
        network.stop(timeout=LIMIT)
    assert all(process.returncode == 0 for process in network.processes.values())
    lines = [json.loads(line) for line in (tmp_path / "p0.log").read_text().splitlines()]
    assert [line["event"] for line in lines if line["event"] in ("listening", "stopped")] == ["listening", "stopped"]


async def health(network):
    identity = Certified(network.authority.folder / "p1")
    async with identity.channel(network.addresses["p0"], "p0", []) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        request = health_pb2.HealthCheckRequest(service="pushcen.v1.Peer").SerializeToString()
        return health_pb2.HealthCheckResponse.FromString(await check(request, timeout=LIMIT)).status


def test_two_peers_without_certificates_on_one_machine(tmp_path):
    ports = free_ports(2)
    names = ("ann", "bob")

    def start(at):
        words = ["peer", TINY, "--insecure", names[at], "--founders", "ann,bob", "--state", str(tmp_path / names[at])]
        words += ["--listen", f"127.0.0.1:{ports[at]}", "--join", f"127.0.0.1:{ports[1 - at]}"]
        words += [
            "--set",
            "runtime.pause=0.02",
            "--set",
            "runtime.retry_last=1",
        ]  # so they meet once both are up
        log = (tmp_path / f"{names[at]}.log").open("wb")
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.Popen([sys.executable, "-m", "pushcen", *words], stdout=log, stderr=log, env=environment)

    def heard(name):
        try:
            return read_state(tmp_path / name)["peer"]["credited"]
        except (LedgerError, KeyError):  # it has not begun
            return False

    processes = [start(0), start(1)]
    try:
        wait_until(lambda: all(map(heard, names)), lambda: (tmp_path / "ann.log").read_text())
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(LIMIT) for process in processes]
    assert codes == [0, 0]
    assert "no encryption" in (tmp_path / "ann.log").read_text()
    assert pushcen("audit", *(tmp_path / name for name in names)).exit_code == 0


def test_forget_and_revoke_reach_the_network_through_any_peer_that_is_there(tmp_path):
    async def story():
        world = World(tmp_path, pause=0.02)
        await world.start(*world.names)
        await until(lambda: world.events("p2") > 2)
        await world.stop("p2")
        folder, to = world.authority.folder, ["--to", world.addresses["p2"], "--to", world.addresses["p0"]]
        loop = asyncio.get_running_loop()
        for words in (
            ["forget", "p2/1", "--authority", folder, *to],
            ["certs", "revoke", folder, "p2", *to],
        ):
            command = [sys.executable, "-m", "pushcen", *map(str, words)]
            done = await loop.run_in_executor(None, lambda c=command: subprocess.run(c, capture_output=True, text=True))
            assert done.returncode == 0, done.stderr
            assert "told 1 of 2" in done.stdout
            assert f"not told: {world.addresses['p2']}" in done.stderr
        await until(lambda: "p2/1" in world.node("p1").peer.forgotten and world.node("p1").identity.revision == 1)
        await world.stop()

    run(story())


def test_peers_whose_frozen_parts_differ_are_refused_and_it_is_told_in_one_line(tmp_path):
    result = pushcen("up", "tests.runtime.tasks:frozen", "--peers", 2, "--events", 3, "--folder", tmp_path / "up")
    assert result.exit_code == 2
    [said] = [line for line in result.output.splitlines() if "error" in line]
    assert " runs something else: frozen.0.bias = [16] float32 " in said
    assert said.split(": ")[1].endswith("ended with 2")
    assert "{" not in said


def test_up_shows_peers_by_the_metric_of_their_task(tmp_path):
    folder = tmp_path / "run"
    settings = ["--set", "runtime.pause=0.05", "--set", "runtime.evaluate_every=1"]
    done = pushcen("up", "tests.runtime.tasks:numbers", "--peers", 2, "--events", 4, "--folder", folder, *settings)
    assert done.exit_code == 0, done.output
    assert "RMSE" in done.output
    assert "accuracy" not in done.output
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["metric"]["name"] == "rmse"
    assert summary["best_rmse"]["rmse"] <= summary["final"]["rmse"]
    assert summary["final"]["rmse_worst_tenth"] == max(summary["final"]["clients"].values())
    assert 0 < summary["final"]["mae"] <= summary["final"]["rmse"]
    row = json.loads((folder / "p0" / "metrics.jsonl").read_text().splitlines()[-1])
    assert {"rmse", "mae", "test_loss", "loss", "metric"} <= row.keys()
    assert "accuracy" not in row
