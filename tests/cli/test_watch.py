"""`pushcen watch`, and `--watch` of other commands."""

import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.runtime.security.authority import Authority

SMALL = ["--clients", "3", "--horizon", "0.5", "--workers", "1"]


def invoke(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "one"
    invoke("simulate", *SMALL, "--folder", folder)
    return folder


def test_a_run_becomes_one_file(run, tmp_path):
    page = tmp_path / "there" / "page.html"
    assert "page.html: 0.1 MB" in invoke("watch", run, "--export", page).output.replace("\n", "")
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert '"events":[["p",0.0,' in text
    assert str(run.parent) not in text  # it may be given to anybody


def test_what_is_no_run_is_refused(tmp_path):
    assert "no such folder" in invoke("watch", tmp_path / "gone", code=2).output
    assert "holds no run" in invoke("watch", tmp_path, "--export", tmp_path / "x.html", code=2).output


def test_real_peers_are_asked_with_certificates_only(run, tmp_path):
    assert "--certs FOLDER" in " ".join(invoke("watch", "127.0.0.1:9", code=2).output.split())
    assert "is for addresses" in " ".join(invoke("watch", run, "--certs", tmp_path, code=2).output.split())
    Authority.found(tmp_path / "authority", "test", ["ann"]).issue("ann")
    said = invoke("watch", "127.0.0.1:9", "--certs", tmp_path / "authority" / "ann", code=2).output
    assert "no peer shows how it is: 127.0.0.1:9: UNAVAILABLE" in " ".join(said.split())
    (tmp_path / "full" / "x").mkdir(parents=True)
    asked = ("watch", "127.0.0.1:9", "--certs", tmp_path / "authority" / "ann", "--folder", tmp_path / "full")
    assert "must be empty" in " ".join(invoke(*asked, code=2).output.split())


def test_without_the_extra_it_says_what_to_install_and_can_still_export(run, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "pushcen.watch.server", raising=False)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    said = " ".join(invoke("watch", run, "--no-browser", code=2).output.split())
    assert "pip install 'pushcen[watch]'" in said
    invoke("watch", run, "--export", tmp_path / "page.html")


STARTED = []


@pytest.fixture(autouse=True)
def _none_is_left():
    """End what a test that failed has left running."""
    yield
    for process in STARTED:
        if process.poll() is None:
            process.kill()
            process.wait()
    STARTED.clear()


def start(*words):
    program = [sys.executable, "-m", "pushcen", *map(str, words)]
    STARTED.append(subprocess.Popen(program, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    return STARTED[-1]


def address_of(process):
    for line in process.stderr:
        if found := re.search(r"the page: (http://127\.0\.0\.1:\d+/)", line):
            return found[1]
    raise AssertionError("it ended without a page")


def end(process):
    process.send_signal(signal.SIGINT)
    try:
        said = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, *said


def test_it_serves_until_it_is_interrupted_and_a_port_that_is_taken_is_named(run):
    process = start("watch", run, "--no-browser")
    address = address_of(process)
    with urllib.request.urlopen(address, timeout=20) as answer:
        assert b"<title>pushcen</title>" in answer.read()
    with urllib.request.urlopen(address + "stream", timeout=20) as stream:
        assert stream.readline().startswith(b'data: [{"run":0,')
        port = address.split(":")[-1].strip("/")
        assert f"{port}: Address already in use; choose another" in invoke("watch", run, "--port", port, code=2).output
        assert end(process)[::2] == (0, "")


def test_the_server_is_an_extra():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert 'watch = ["starlette' in text


def test_a_run_shows_itself_and_the_page_stays(tmp_path):
    process = start("simulate", *SMALL, "--folder", tmp_path / "run", "--watch", "--no-browser")
    address = address_of(process)
    with urllib.request.urlopen(address + "stream", timeout=120) as stream:
        line = b""
        while b'"status":"finished"' not in line:
            line = stream.readline()
    assert any("the page stays until Ctrl-C; later: pushcen watch" in line for line in process.stderr)
    code, said, _ = end(process)
    assert (code, "PushCen" in said) == (0, True)


def test_a_comparison_shows_every_run_as_it_comes(tmp_path):
    words = ["--methods", "pushcen,independent", "--runs", tmp_path, "--name", "both", "--watch", "--no-browser"]
    process = start("compare", *SMALL, *words)
    found = set()
    with urllib.request.urlopen(address_of(process) + "stream", timeout=120) as stream:
        while len(found) < 2:
            found |= set(re.findall(r'"label":"(\w+)"', stream.readline().decode()))
    assert any("the page stays" in line for line in process.stderr)
    code, said, _ = end(process)
    assert code == 0
    assert found == {"PushCen", "Independent"}
    assert f"pushcen watch {tmp_path / 'both'}" in said.replace("\n", "")
