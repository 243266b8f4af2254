"""Networks of real processes: killed, cut in two, slowed down; and as good as the simulator's."""

import collections
import random
import shutil
import statistics
import subprocess
import sys
import time

import pytest

from pushcen.errors import LedgerError
from pushcen.protocol import UNIT
from pushcen.runtime.local import LocalNetwork
from pushcen.runtime.network import generation_of
from pushcen.runtime.state_folder import read_state

DIGITS, TINY = "tests.runtime.tasks:digits", "tests.runtime.tasks:tiny"
QUICK = {"runtime.gossip_every": 0.5, "runtime.hello_every": 1.0, "runtime.retry_first": 0.2, "runtime.retry_last": 2.0}


def survive(folder, *, peers, events, kills, chances, task, seconds, more=(), hidden=0):
    """Let peers die `kills` times in all, at moments of their own choice and of ours, and run to the end after that."""
    settings = {**QUICK, "runtime.start_with": min(2, peers - 1), "runtime.pause": 0.05, "runtime.evaluate_every": 5}
    settings |= dict(more)
    program = ("-m", "tests.runtime.crash")
    network = LocalNetwork(folder, task, peers, events, settings, program=program, hidden=hidden)
    rng, end, log = random.Random(1), time.monotonic() + seconds, folder / "crashes"
    mortal = {"CRASH": ",".join(f"{moment}={chance}" for moment, chance in chances.items()), "CRASH_LOG": str(log)}
    deaths, sudden, lives = 0, 0, dict.fromkeys(network.names, 1)

    def lives_now(name):  # it is up, and not still loading its libraries
        up = (folder / f"{name}.log").read_text().count('"event": "listening"')
        return up >= lives[name] and network.processes[name].poll() is None

    network.start(environment=mortal)
    try:
        while deaths < kills:
            assert time.monotonic() < end, f"{deaths} kills in {seconds} s"
            time.sleep(0.1)
            if rng.random() < 0.02 and (there := list(filter(lives_now, network.names))):
                network.kill(rng.choice(there))
                sudden += 1
            for name in network.names:
                code = network.processes[name].poll()
                if code is not None:
                    assert code == -9, network.last_words(name)
                    deaths += 1
                    lives[name] = (folder / f"{name}.log").read_text().count('"event": "listening"') + 1
                    network.start(name, environment=mortal)
        for name in network.names:
            network.kill(name)
        network.start()
        network.wait(end - time.monotonic())
    finally:
        network.stop()
    moments = collections.Counter(log.read_text().split()) if log.exists() else collections.Counter()
    moments["sudden"] = sudden
    found = network.audit()
    assert found.violations == []
    assert found.balanced
    assert found.held + found.on_links == peers * UNIT
    assert found.missing == {}
    return network, moments


@pytest.mark.parametrize(
    "method", [{}, {"method.name": "pushcen-lean", "method.renew_after": 12}], ids=["pushcen", "lean"]
)
def test_kills_at_every_moment_lose_and_make_no_mass(tmp_path, method):
    chances = {"train": 0.04, "write": 0.04, "commit": 0.06, "send": 0.02, "receive": 0.02}
    network, moments = survive(
        tmp_path, peers=3, events=12, kills=3, chances=chances, task=TINY, seconds=600, more=method
    )
    assert sum(moments.values()) >= 3
    assert all(network.events(name) == 12 for name in network.names)


def test_an_event_counts_once_it_is_committed(tmp_path):
    """A peer that dies right after its last commit trains no more, and never writes the row of that event."""
    network = LocalNetwork(tmp_path, TINY, 2, 2, {**QUICK, "runtime.start_with": 1})
    assert network.events("p0") == 0
    network.start()
    try:
        network.wait(120)
    finally:
        network.stop()
    (network.state("p0") / "metrics.jsonl").unlink()
    assert network.events("p0") == 2


def test_real_peers_half_of_them_down_are_founded_anew_by_one_command(tmp_path):
    network = LocalNetwork(tmp_path, TINY, 4, None, {**QUICK, "runtime.pause": 0.05})
    folder, names = network.authority.folder, network.names

    def pushcen(*words):
        command = [sys.executable, "-m", "pushcen", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    def wait(condition):
        end = time.monotonic() + 180
        while not condition():
            assert time.monotonic() < end, {name: network.last_words(name) for name in names}
            time.sleep(0.2)

    def trained(*some, more=3):
        goal = {name: network.events(name) + more for name in some}
        wait(lambda: all(network.events(name) >= goal[name] for name in some))

    def is_in(number, *some):
        try:
            peers = [read_state(network.state(name))["peer"]["peer"] for name in some]
        except (LedgerError, KeyError):
            return False  # one of them has only just begun
        return set(map(generation_of, peers)) == {number}

    network.start()
    try:
        trained(*names)
        network.kill("p2")
        network.kill("p3")
        told = pushcen("refound", folder, "--founders", "p0,p2", "--to", network.addresses["p1"])
        assert (told.returncode, "generation 1, founded by p0, p2" in told.stdout) == (0, True), told.stderr
        wait(lambda: is_in(1, "p0", "p1"))
        audited = pushcen("audit", *map(network.state, names))
        assert "p2/1 has not entered" in audited.stdout
        shutil.rmtree(network.state("p3"))  # this one has lost its disk, too
        network.start("p2", "p3")
        wait(lambda: is_in(1, *names))
        trained("p0", "p1", "p2")
        wait(lambda: all(read_state(network.state(name))["peer"]["held"] for name in names))
    finally:
        network.stop()
    assert [read_state(network.state(name))["peer"]["founded"] for name in names] == [UNIT, 0, UNIT, 0]
    found = network.audit()
    assert (found.violations, found.missing, found.balanced) == ([], {}, True)
    assert found.held + found.on_links == 2 * UNIT
    audited = pushcen("audit", *map(network.state, names))
    assert audited.returncode == 0, audited.stdout
    again = pushcen("refound", folder, "--to", "127.0.0.1:1")
    assert (again.returncode, "nobody was told" in again.stderr) == (2, True), again.stdout


@pytest.mark.slow
def test_a_hundred_kills_lose_and_make_no_mass_and_do_not_hurt(tmp_path):
    chances = {"train": 0.02, "write": 0.02, "commit": 0.03, "send": 0.005, "receive": 0.005}
    network, moments = survive(tmp_path, peers=8, events=60, kills=100, chances=chances, task=DIGITS, seconds=3000)
    assert all(moments[moment] for moment in ("train", "write", "commit", "send", "receive", "sudden")), moments
    calm = LocalNetwork(tmp_path / "calm", DIGITS, 8, 60, {**QUICK, "runtime.start_with": 2, "runtime.pause": 0.05})
    calm.start()
    try:
        calm.wait(1200)
    finally:
        calm.stop()
    killed, unharmed = (statistics.fmean(map(one.score, one.names)) for one in (network, calm))
    assert killed > unharmed - 0.03, (killed, unharmed)


@pytest.mark.slow
def test_a_hundred_kills_of_hosts_and_of_those_they_host_lose_and_make_no_mass(tmp_path):
    chances = {"train": 0.02, "write": 0.02, "commit": 0.03, "send": 0.005, "receive": 0.005}
    more = {"runtime.start_timeout": 300}
    network, _ = survive(
        tmp_path, peers=6, hidden=3, events=40, kills=100, chances=chances, task=TINY, seconds=3000, more=more
    )
    lives = {name: read_state(network.state(name))["peer"]["boot"] for name in network.names}
    hosted = sum(lives[name] for name in network.hidden)
    assert hosted > 20, lives
    assert sum(lives.values()) - hosted > 20, lives


@pytest.mark.slow
@pytest.mark.parametrize("method", ["pushcen", "pushcen-lean"])
def test_eight_peers_on_digits_are_as_good_as_the_simulators_clients(tmp_path, method):
    """Three seeds, 20 compute events each: within three points.

    A peer here merges, trains and pushes within a moment, once a second: in the simulator that is `collect = "end"`
    with a constant time. (With each push a whole event after its merge, all in step, clients fare worse there.)
    """
    from pushcen.config import load_config
    from pushcen.runs import launch

    events, seeds, method = 20, (0, 1, 2), {"method.name": method} if method != "pushcen" else {}
    real, simulated = [], []
    for seed in seeds:
        settings = {"seed": seed, "runtime.start_with": 7, "runtime.pause": 1.0, "runtime.evaluate_every": events}
        network = LocalNetwork(tmp_path / f"real{seed}", "digits", 8, events, {**QUICK, **settings, **method})
        network.start()
        try:
            network.wait(1200)
        finally:
            network.stop()
        assert network.audit().balanced
        assert statistics.median(row["seconds"] for name in network.names for row in network.rows(name)) < 0.4
        real.append(statistics.fmean(map(network.score, network.names)))
        world = {"clients": 8, "seed": seed, "horizon": float(events), "collect": "end", "compute.kind": "constant"}
        config = load_config("digits", {**world, **method, "participation.delayed": 0.0})
        simulated.append(launch(config, tmp_path / f"simulated{seed}").last["accuracy"])
    print(f"real {real}, simulated {simulated}")
    assert abs(statistics.fmean(real) - statistics.fmean(simulated)) < 0.03, (real, simulated)
