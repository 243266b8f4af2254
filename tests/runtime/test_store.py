"""The state folder: what is committed stays, what is not has not happened, and nothing damaged is overwritten."""

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress

import pytest
import torch

from pushcen.errors import LedgerError
from pushcen.runtime.kept import weights_of
from pushcen.runtime.state_folder import StateFolder, read_state

TENSORS = {"model.weight": torch.arange(6.0)}


def committed(folder, **values):
    store = StateFolder(folder)
    store.commit({"peer": {"held": 1}, **values}, {"weights": store.write("weights", TENSORS)})
    return store


def test_what_is_committed_is_there_again(tmp_path):
    committed(tmp_path, rng=[1, 2]).close()
    store = StateFolder(tmp_path)
    assert store.load()["peer"] == {"held": 1}
    assert torch.equal(store.tensors()["model.weight"], TENSORS["model.weight"])
    assert list(weights_of(tmp_path)) == ["weight"]


def test_a_file_that_no_commit_names_has_not_happened(tmp_path):
    store = committed(tmp_path)
    store.write("weights", {"model.weight": torch.zeros(6)})  # and the power fails
    store.close()
    store = StateFolder(tmp_path)
    assert torch.equal(store.tensors()["model.weight"], TENSORS["model.weight"])
    store.commit({}, {"weights": store.write("weights", {"model.weight": torch.ones(6)})})
    assert torch.equal(store.tensors()["model.weight"], torch.ones(6))
    assert len(list(tmp_path.glob("weights-*"))) == 1  # the others are gone


def test_groups_of_tensors_are_saved_each_in_its_own_time(tmp_path):
    store = committed(tmp_path)
    store.commit({}, {"optimiser": store.write("optimiser", {"optimiser.m": torch.ones(1)})})
    store.commit({}, {"weights": store.write("weights", TENSORS)})
    assert set(store.tensors()) == {"model.weight", "optimiser.m"}


def test_the_ledger_is_synced_at_every_commit(tmp_path):
    store = committed(tmp_path)
    assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


KILLED = """
import os, sys, torch
from pathlib import Path
from pushcen.runtime.state_folder import StateFolder
store = StateFolder(Path(sys.argv[1]))
for i in range(1000):
    file = store.write("weights", {"model.weight": torch.full((1000,), float(i))})
    if i == 20: print("go", flush=True)
    store.commit({"peer": {"events": i}}, {"weights": file})
"""


def test_a_kill_leaves_a_whole_commit(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE)
    process.stdout.readline()
    process.kill()
    process.wait()
    store = StateFolder(tmp_path)
    events = store.load()["peer"]["events"]
    assert events >= 19
    assert store.tensors()["model.weight"].tolist() == [events] * 1000


def opened(folder):
    store = StateFolder(folder)
    try:
        return store.tensors()
    finally:
        store.close()


@pytest.mark.parametrize("damage", ["garbage", "newer", "empty table", "weights", "no weights"])
def test_damage_is_told_and_nothing_is_overwritten(tmp_path, damage):
    committed(tmp_path).close()
    ledger, [weights] = tmp_path / "ledger.db", list(tmp_path.glob("weights-*"))
    if damage == "garbage":
        ledger.write_bytes(b"not a database, not at all" * 500)
    elif damage == "newer":
        with closing(sqlite3.connect(ledger)) as db:
            db.execute("PRAGMA user_version = 99")
    elif damage == "empty table":
        with closing(sqlite3.connect(ledger)) as db, db:
            db.execute("UPDATE state SET value = 'no json' WHERE key = 'peer'")
    elif damage == "weights":
        data = bytearray(weights.read_bytes())
        data[-1] ^= 1
        weights.write_bytes(data)
    else:
        weights.unlink()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    expected = {
        "garbage": "not a database",
        "newer": "format 99, from a newer pushcen",
        "empty table": "damaged",
        "weights": "not what was committed",
        "no weights": "is missing",
    }[damage]
    with pytest.raises(LedgerError, match=expected):
        opened(tmp_path)
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir() if not path.name.endswith(("-wal", "-shm"))}
    assert after == before


def test_only_one_process_at_a_time(tmp_path):
    store = committed(tmp_path)
    with pytest.raises(LedgerError, match="another process"):
        StateFolder(tmp_path)
    store.close()
    StateFolder(tmp_path).close()


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="must be able to write"):
        StateFolder(tmp_path / "file")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
@pytest.mark.parametrize("full", [True, False], ids=["full", "read-only"])
def test_a_full_or_read_only_disk_is_told_and_leaves_the_last_commit(tmp_path, full):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=False).returncode:
        pytest.skip("cannot mount")
    try:
        store = committed(disk)
        if full:
            with pytest.raises(LedgerError, match="nothing committed is lost"):
                store.commit({}, {"weights": store.write("weights", {"model.weight": torch.zeros(1_000_000)})})
            (disk / "filler").write_bytes(b"x" * 100_000) if shutil.disk_usage(disk).free > 100_000 else None
            with pytest.raises(LedgerError, match="full"):
                store.commit({f"key{i}": "x" * 20_000 for i in range(200)})
            for path in [*disk.glob("filler"), *disk.glob("weights-2*")]:
                path.unlink()
            store.close()
        else:
            store.close()
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
            with pytest.raises(LedgerError, match=r"[Rr]ead-only"):
                StateFolder(disk)
            subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        again = StateFolder(disk)
        assert again.load()["peer"] == {"held": 1}
        assert torch.equal(again.tensors()["model.weight"], TENSORS["model.weight"])
        again.close()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_ledger_knows_that_it_is_a_copy(tmp_path):
    store = committed(tmp_path / "a")
    store.claim()
    assert not store.is_copy()
    store.close()
    (tmp_path / "a").rename(tmp_path / "b")  # moved on one disk: still the same file
    store = StateFolder(tmp_path / "b")
    assert not store.is_copy()
    store.close()
    shutil.copytree(tmp_path / "b", tmp_path / "c")
    store = StateFolder(tmp_path / "c")
    assert store.is_copy()
    store.claim()
    assert not store.is_copy()


def test_a_running_peers_ledger_can_be_read(tmp_path):
    store = committed(tmp_path)
    assert read_state(tmp_path)["peer"] == {"held": 1}
    store.commit({"peer": {"held": 2}})
    assert read_state(tmp_path)["peer"] == {"held": 2}
    with pytest.raises(LedgerError, match="no state folder"):
        read_state(tmp_path / "nowhere")


def test_whoever_looks_while_a_ledger_is_made_sees_none_or_all_of_it(tmp_path):
    ended, seen = threading.Event(), []

    def look():
        while not ended.is_set():
            for folder in tmp_path.iterdir():
                with suppress(LedgerError) if not (folder / "ledger.db").exists() else nullcontext():
                    seen.append(read_state(folder))

    with ThreadPoolExecutor(1) as other:
        looking = other.submit(look)
        for at in range(100):
            StateFolder(tmp_path / f"p{at}").close()
        ended.set()
        looking.result()
    assert {} in seen


@pytest.mark.parametrize("left", ["ledger.db", "ledger.db.new", "ledger.db.new-wal", "ledger.db.new-shm"])
def test_what_a_first_start_that_was_cut_off_left_does_not_matter(tmp_path, left):
    (tmp_path / left).write_bytes(b"" if left == "ledger.db" else b"half of a ledger" * 300)
    committed(tmp_path).close()
    assert read_state(tmp_path)["peer"] == {"held": 1}
    assert not list(tmp_path.glob("ledger.db.new*"))
