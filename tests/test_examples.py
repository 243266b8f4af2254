"""The examples run, in a small form, and print what they promise."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


def printed(name, folder, **options):
    env = os.environ | {"OMP_NUM_THREADS": "1"} | options
    done = subprocess.run(
        [sys.executable, EXAMPLES / name], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def number(text):
    return int(text.replace(",", ""))


def test_every_example_is_run_here():
    tested = set(re.findall(r'printed\("(\w+\.py)"', pathlib.Path(__file__).read_text()))
    assert tested == {path.name for path in EXAMPLES.glob("*.py")}


def test_a_task_of_ones_own(tmp_path):
    assert "| independent |" in printed("own_task.py", tmp_path, CLIENTS="6", HORIZON="2").lower()
    assert {"signals.png", "signals_bytes.png"} <= {path.name for path in tmp_path.iterdir()}


def test_a_language_model_learns(tmp_path):
    pytest.importorskip("transformers")
    said = printed("language_model.py", tmp_path, CLIENTS="2", HORIZON="2", WIDTH="16", SAMPLES="30")
    found = dict(re.findall(r"^([\w-]+) +perplexity +([\d.]+), sent [\d,]+ bytes$", said, re.MULTILINE))
    assert set(found) == {"pushcen", "async-dfedavg", "independent"}
    assert all(float(perplexity) < 150 for perplexity in found.values())


def test_a_text_classifier_compares_methods(tmp_path):
    pytest.importorskip("transformers")
    said = printed("text_classifier.py", tmp_path, CLIENTS="3", HORIZON="2", WIDTH="16")
    assert len(re.findall(r"^\| (PushCen|Async-DFedAvg|Independent) \| [\d.]+ \|", said, re.MULTILINE)) == 3


def test_a_task_is_found_by_the_path_of_its_file(tmp_path):
    pytest.importorskip("transformers")
    flags = ["--clients", "2", "--set", "horizon=1", "--workers", "1", "--name", "it"]
    command = [sys.executable, "-m", "pushcen", "simulate", "--task", f"{EXAMPLES}/language_model.py:task", *flags]
    env = os.environ | {"OMP_NUM_THREADS": "1", "WIDTH": "16", "SAMPLES": "30"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "it" / "summary.json").is_file()


def test_a_method_of_ones_own_sends_half_the_bytes(tmp_path):
    said = printed("own_method.py", tmp_path, CLIENTS="4", HORIZON="2")
    mine, theirs = re.search(r"a message: ([\d,]+) bytes, of push-sum ([\d,]+)", said).groups()
    assert 0.5 <= number(mine) / number(theirs) < 0.51


def test_a_codec_in_another_system_loses_no_accuracy(tmp_path):
    said = printed("codec_elsewhere.py", tmp_path)
    (dense, large), _, (centroids, small) = re.findall(r"accuracy ([\d.]+)% +([\d,]+) bytes", said)
    assert float(centroids) > float(dense) - 2
    assert number(large) > 5 * number(small)
    assert "one bit changed on the way: the payload's checksum does not match" in said


def test_peers_from_python_learn_and_lose_no_mass(tmp_path):
    said = printed("peer.py", tmp_path, EVENTS="5", TMPDIR=str(tmp_path))
    assert len(re.findall(r"ward-\d: \d+ compute events, accuracy \d+%, sent [\d,]+ bytes", said)) == 3
    assert "founded 3, held or on links 3\n" in said
