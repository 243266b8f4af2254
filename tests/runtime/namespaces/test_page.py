"""docs/deploy.md, word for word: every command, typed where its prompt says, in networks as it describes."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys

import pytest
import typer

from pushcen.cli import app

from .router import missing
from .sites import ROOT, Sites, only

PAGE = (ROOT / "docs" / "deploy.md").read_text()
WARDS = ("ward-1", "ward-2", "ward-3")


def typed():
    """Yield (machine, command) in the page's order."""
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            machine, prompt, command = line.partition("$ ")
            if prompt:
                yield machine, command


class Terminals(Sites):
    """The four machines of the page, and the proxy of ward-3. Each has a home folder, and `stick` in it."""

    def __init__(self, folder):
        super().__init__(folder)
        (folder / "stick").mkdir()
        for name in ("authority", *WARDS):
            (folder / name).mkdir()
            (folder / name / "stick").symlink_to(folder / "stick")
        (folder / "bin").mkdir()
        (folder / "bin" / "pushcen").write_text(f'#!/bin/sh\nexec {sys.executable} -m pushcen "$@"\n')
        (folder / "bin" / "pushcen").chmod(0o755)
        self.add("authority")
        self.add("ward-1")
        self.add("ward-2", allow=only(443))
        self.add("ward-3", allow=only(3128))
        self.add("proxy")

    def environment(self):
        return {**super().environment(), "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "COLUMNS": "200"}

    def type(self, machine, command):
        """Type a command and wait for its end."""
        words = {"cwd": self.folder / machine, "env": self.environment(), "timeout": 300}
        command = self.command(machine, ["sh", "-c", command])
        return subprocess.run(command, capture_output=True, text=True, **words)

    def type_again(self, machine, command):
        """Type a command until all is well."""
        tried = []

        def is_well():
            tried.append(self.type(machine, command))
            return tried[-1].returncode == 0

        self.wait(is_well)
        return tried[-1]

    def leave_running(self, machine, command):
        """Type a command into a terminal of its own."""
        with (self.folder / f"{machine}.log").open("ab") as log:
            self.processes[machine] = subprocess.Popen(
                self.command(machine, ["sh", "-c", f"exec {command}"]), stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, cwd=self.folder / machine, env=self.environment(),
            )  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing() or "-")
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no command curl here")
def test_the_page_takes_three_hospitals_from_nothing_to_a_model(tmp_path):
    said, started = {}, []
    with Terminals(tmp_path) as machines:
        machines.start("proxy", "-m", "tests.runtime.proxy", "0.0.0.0:3128")
        for machine, command in typed():
            if command.startswith("pushcen refound") and machines.processes["ward-1"].poll() is not None:
                for at, again in started:  # "started again with the same command, a peer goes on"
                    machines.leave_running(at, again)
                machines.wait(lambda: machines.log("ward-1").count('"event": "listening"') == 2)
            if command.startswith("pushcen peer"):
                started.append((machine, command))
                machines.leave_running(machine, command)
                continue
            if command.startswith("pushcen export"):
                machines.wait(lambda: all("training is done" in machines.log(ward) for ward in WARDS))
            if command.startswith("mkdir stick/ledger-1"):
                for ward in WARDS:
                    machines.processes[ward].send_signal(signal.SIGINT)
                assert [machines.processes[ward].wait(300) for ward in WARDS] == [0, 0, 0], machines.logs()
            patient = command.startswith(("pushcen status", "curl", "pushcen refound"))  # until peers have started
            done = machines.type_again(machine, command) if patient else machines.type(machine, command)
            assert done.returncode == 0, (machine, command, done.stdout, done.stderr, machines.logs())
            said[machine, command] = done.stdout
        for ward in WARDS:
            keys = {re.search(rf"key of {ward}: (.*)", text)[1] for text in said.values() if f"key of {ward}" in text}
            assert len(keys) == 1
        assert any("every quantum is somewhere" in text for text in said.values())
        assert (tmp_path / "ward-2" / "model.safetensors").stat().st_size > 10_000
        assert machines.router.carried["ward-3", "ward-1"] == machines.router.carried["ward-2", "ward-3"] == 0


def commands():
    """Yield every command of pushcen's that the page shows, in blocks or in passing."""
    yield from (command for _, command in typed() if command.startswith("pushcen"))
    yield from (found for found in re.findall(r"`(pushcen [^`]*)`", PAGE.replace("\n", " ")) if "..." not in found)


@pytest.mark.parametrize("command", sorted(set(commands())))
def test_every_command_that_the_page_shows_is_one(command):
    words = shlex.split(command.partition("|")[0])[1:]
    found = typer.main.get_command(app)
    while words and words[0] in getattr(found, "commands", {}):
        found = found.commands[words.pop(0)]
    flags = {flag for one in found.params for flag in (*one.opts, *one.secondary_opts)}
    assert not hasattr(found, "commands")
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= flags


def test_the_page_types_nothing_that_the_test_does_not():
    """Every block of commands has prompts: nothing is shown to be typed that was not."""
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL):
        first = block.splitlines()[0]
        assert re.match(r"(authority|ward-\d)\$ ", first), first
