"""Real peers at sites of their own: processes in network namespaces, with names that only a hosts file knows."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from pushcen.errors import LedgerError
from pushcen.runtime.audit import examine
from pushcen.runtime.security.authority import Authority
from pushcen.runtime.state_folder import read_state
from tests.runtime.world import LIMIT, wait_until

from .router import Gateway, Router

ROOT = Path(__file__).parents[3]
QUICK = {"pause": 0.1, "gossip_every": 1, "hello_every": 2, "retry_first": 0.2, "retry_last": 2, "start_timeout": 300}


def only(port, *addresses):
    """What a firewall lets out: one port, anywhere or at some addresses."""
    return lambda address, asked: asked == port and (not addresses or address in addresses)


class Sites:
    """A router, sites in a folder, and peers at them. All of them listen at 443, where they listen."""

    def __init__(self, folder):
        self.folder, self.hosts = folder, folder / "hosts"
        self.hosts.write_text("127.0.0.1 localhost\n")
        self.router, self.all, self.processes = Router(), {}, {}

    def __enter__(self):
        self.router.start()
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.router.__exit__()

    def add(self, name, hidden=False, **gateway):
        """Make a site, behind a gateway if it is hidden or one is described; `NAME.example` is its outside."""
        number = len(self.all) + 1
        outside, inside = f"10.9.0.{number}", f"192.168.{number}.5"
        behind = Gateway(outside, **gateway) if hidden or gateway else None
        self.all[name] = self.router.site(name, inside if behind else outside, behind)
        with self.hosts.open("a") as file:
            file.write(f"{outside} {name}.example\n")
        return self.all[name]

    def command(self, name, words):
        """Return the command that runs another at a site."""
        return self.all[name].inside(words, self.hosts)

    def environment(self):
        """Return what processes at sites see of this one's environment: not its proxies."""
        own = {key: value for key, value in os.environ.items() if not key.lower().endswith("proxy")}
        return {**own, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}

    def start(self, name, *words):
        """Start a program of Python at a site; what it says goes to a log."""
        command = self.command(name, [sys.executable, *words])
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment(), cwd=self.folder
            )

    def log(self, name):
        return (self.folder / f"{name}.log").read_text()

    def logs(self):
        """Return what there is to read if something did not happen."""
        for name, process in self.processes.items():
            if process.poll() not in (None, 0):
                return f"{name} has ended with {process.returncode}: {self.log(name)[-3000:]}"
        return "\n".join(f"--- {name}\n{self.log(name)[-2500:]}" for name in self.processes)

    def wait(self, condition):
        """Wait for something to be so, as long as nobody fails."""

        def is_so():
            assert all(process.poll() in (None, 0) for process in self.processes.values()), self.logs()
            return condition()

        wait_until(is_so, self.logs)

    def signal(self, name, number):
        self.processes[name].send_signal(number)

    def stop(self):
        """Stop all peers, as an operator does; whoever sleeps has to wake up first."""
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            process.wait(LIMIT)


class Wards(Sites):
    """Sites with a peer each, of one network."""

    def __init__(self, folder, names, **settings):
        super().__init__(folder)
        self.names, self.settings = list(names), {**QUICK, **settings}
        self.authority = Authority.found(folder / "authority", "wards", self.names)
        for name in self.names:
            self.authority.issue(name)

    def peer(self, name, *options, task="tests.runtime.tasks:tiny"):
        """Start a peer. It listens, unless its site is behind a gateway."""
        words = ["-m", "pushcen", "peer", task, "--certs", self.folder / "authority" / name]
        words += ["--state", self.state(name)]
        opened = [one for one in self.names if one in self.all and not self.all[one].gateway]
        if name in opened:
            words += ["--listen", "0.0.0.0:443", "--advertise", f"{name}.example:443"]
        words += [word for one in opened if one != name for word in ("--join", f"{one}.example:443")]
        words += [word for key, value in self.settings.items() for word in ("--set", f"runtime.{key}={value}")]
        self.start(name, *map(str, words), *options)

    def state(self, name):
        return self.folder / f"{name}-state"

    def credited(self, name):
        """Return how much of each other's mass a peer has taken in, by name."""
        try:
            found = read_state(self.state(name))["peer"]["credited"]
        except (LedgerError, KeyError):  # it has not begun
            return {}
        return {peer.partition("/")[0]: value for peer, value in found.items()}

    def wait_for_news(self, *pairs):
        """Wait until more has come to the first of each pair from the second than now."""
        before = {pair: self.credited(pair[0]).get(pair[1]) for pair in pairs}
        self.wait(lambda: all(self.credited(one).get(other) != old for (one, other), old in before.items()))

    def every_pair(self, *names):
        names = names or self.names
        return [(one, other) for one in names for other in names if one != other]

    def check(self):
        """Stop everybody; every quantum must be somewhere."""
        self.stop()
        assert {name: self.processes[name].returncode for name in self.names} == dict.fromkeys(self.names, 0), (
            self.logs()
        )
        found = examine([self.state(name) for name in self.names])
        assert found.sound, (found.wrong, found.unseen)
