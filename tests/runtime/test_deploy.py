"""What deploy/ has is what pushcen and systemd understand."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from pushcen.cli import app

DEPLOY = Path(__file__).parents[2] / "deploy"


def lines(text):
    """Yield the directives of a unit, with lines that go on put together."""
    for line in text.replace("\\\n", " ").splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_understands_the_unit(tmp_path):
    unit = (DEPLOY / "pushcen-peer.service").read_text()
    assert "/opt/pushcen/bin/pushcen" in unit
    (tmp_path / "pushcen-peer.service").write_text(unit.replace("/opt/pushcen/bin/pushcen", sys.executable))
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "pushcen-peer.service")]
    done = subprocess.run(command, capture_output=True, text=True)
    wrong = [line for line in done.stderr.splitlines() if "pushcen-peer.service" in line]
    assert wrong == []


def options_of(command):
    """List the flags of a command of pushcen."""
    return {flag for one in typer.main.get_command(app).commands[command].params for flag in one.opts}


def test_the_unit_and_the_container_start_a_peer_with_options_that_there_are():
    [start] = [value for name, value in lines((DEPLOY / "pushcen-peer.service").read_text()) if name == "ExecStart"]
    words = shlex.split(start)
    assert words[1] == "peer"
    entry = next(line for line in (DEPLOY / "Containerfile").read_text().splitlines() if line.startswith("ENTRYPOINT"))
    for flag in [
        word for word in (*words, *entry.replace('"', " ").replace(",", " ").split()) if word.startswith("--")
    ]:
        assert flag in options_of("peer")
    given = {name for name, _ in lines((DEPLOY / "peer.env").read_text())}
    asked = {word.strip("${}") for word in words if word.startswith("$")}
    assert asked == given
