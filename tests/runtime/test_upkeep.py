"""Upgrades and backups, as docs/deploy.md has them, with real processes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pushcen.protocol import UNIT, epoch_of
from pushcen.runtime.audit import examine
from pushcen.runtime.local import LocalNetwork
from pushcen.runtime.security.authority import Authority
from pushcen.runtime.state_folder import read_state

from .test_processes import QUICK, TINY
from .world import wait_until

FIRST = Path(__file__).parent / "golden" / "first"
"""An authority and the state folders of three stopped peers, written by the first version of the real network."""
CALM = {**QUICK, "runtime.pause": 0.05, "runtime.start_with": 1, "runtime.start_timeout": 300}


def wait(network, condition):
    wait_until(condition, lambda: {name: network.last_words(name, 20) for name in network.processes})


def ledger(network, name):
    return read_state(network.state(name))["peer"]


def sound(network):
    found = examine([network.state(name) for name in network.names])
    assert found.sound, (found.wrong, found.unseen)
    return found.mass


def test_state_folders_of_the_first_version_open_one_by_one_and_go_on_with_all_their_mass(tmp_path):
    settings = {**CALM, "runtime.start_with": 2, "method.name": "push-sum"}
    network = LocalNetwork(tmp_path, TINY, 3, 12, settings)
    shutil.rmtree(tmp_path / "authority")
    shutil.copytree(FIRST, tmp_path, dirs_exist_ok=True)
    before = {name: read_state(network.state(name)) for name in network.names}
    for name in network.names:
        Authority.open(tmp_path / "authority").issue(name)
    try:
        for name in network.names:
            network.start(name, options=["--moved"])  # copied here, from where they were written
            wait(network, lambda name=name: ledger(network, name)["boot"] == 2)
        network.wait(600)
    finally:
        network.stop()
    for name, old in before.items():
        new = read_state(network.state(name))
        assert new["peer"]["peer"] == old["peer"]["peer"] == f"{name}/1"
        assert (old["learner"]["events"], new["learner"]["events"]) == (6, 12)
    mass = sound(network)
    assert mass.held + mass.on_links == 3 * UNIT


@pytest.mark.slow
def test_peers_are_replaced_by_a_newer_version_one_by_one_and_no_mass_is_lost(tmp_path):
    network = LocalNetwork(tmp_path, TINY, 3, None, CALM)

    def credited(name):
        """What the others have taken in from a peer."""
        return {other: ledger(network, other)["credited"].get(f"{name}/1") for other in network.names if other != name}

    try:
        network.start()
        wait(network, lambda: all(network.events(name) > 5 for name in network.names))
        for name in network.names:
            network.stop(name)
            network._program = ["-m", "tests.runtime.newer"]
            goal = network.events(name) + 10
            network.start(name)
            wait(
                network, lambda name=name, goal=goal: ledger(network, name)["boot"] == 2 and network.events(name) > goal
            )
            old = credited(name)
            wait(network, lambda name=name, old=old: all(now != old[other] for other, now in credited(name).items()))
    finally:
        network.stop()
    mass = sound(network)
    assert mass.held + mass.on_links == 3 * UNIT


def restore_copy(backup, state):
    """Copy a backup back, as `cp -a` does."""
    shutil.rmtree(state)
    shutil.copytree(backup, state)


def restore_image(backup, state):
    """Put every file back as it was, in the same place on the disk, as a snapshot of it does."""
    for path in [path for path in state.iterdir() if not (backup / path.name).exists()]:
        path.unlink()
    for path in backup.iterdir():
        with (state / path.name).open("r+b" if (state / path.name).exists() else "wb") as file:
            file.write(path.read_bytes())
            file.truncate()


@pytest.mark.slow
@pytest.mark.parametrize("restore", [restore_copy, restore_image])
def test_an_older_state_that_is_put_back_takes_a_new_epoch_and_makes_no_mass(tmp_path, restore):
    network = LocalNetwork(tmp_path, TINY, 3, None, CALM)
    state, backup = network.state("p2"), tmp_path / "backup"
    try:
        network.start()
        wait(network, lambda: all(network.events(name) > 5 for name in network.names))
        network.stop("p2")
        shutil.copytree(state, backup)
        inode, saved = (state / "ledger.db").stat().st_ino, network.events("p2")
        network.start("p2")
        wait(network, lambda: network.events("p2") > saved + 10)
        network.kill("p2")
        restore(backup, state)
        assert ((state / "ledger.db").stat().st_ino == inode) == (restore is restore_image)
        network.start("p2")
        wait(network, lambda: epoch_of(ledger(network, "p2")["peer"]) > 1)
        wait(network, lambda: network.events("p2") > saved + 3)
        command = [sys.executable, "-m", "pushcen", "forget", "p2/1", "--authority", tmp_path / "authority"]
        subprocess.run([*map(str, command), "--to", network.addresses["p0"]], check=True, timeout=300)
        wait(network, lambda: all("p2/1" in ledger(network, name)["forgotten"] for name in network.names))
    finally:
        network.stop()
    mass = sound(network)
    assert mass.founded == 3 * UNIT
    assert mass.held + mass.on_links + mass.written_off == 3 * UNIT
