"""Print what an idle peer takes, memory and CPU, for docs/runtime.md: two real peers that are done with training.

`python scripts/measure_idle_peer.py` takes a minute, and needs Linux. Mapped is what `top` shows (RSS), files of
libraries with it; the peer's share counts what it has in common with the other one half (PSS); its own is what would
be free without it (USS).
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

from pushcen.runtime.local import LocalNetwork


def memory(process: int) -> dict[str, float]:
    """Return the MB of a process, as Linux counts them."""
    found = {}
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        name, *rest = line.split()
        if rest[-1:] == ["kB"]:
            found[name.rstrip(":")] = int(rest[0]) / 1024
    return {"mapped": found["Rss"], "share": found["Pss"], "own": found["Private_Clean"] + found["Private_Dirty"]}


def cpu(process: int) -> float:
    """Return the seconds of CPU that a process has had."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Train for three events, and look on for a while."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="digits", help="what they have trained [digits]")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to look on [30]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        network = LocalNetwork(Path(folder), given.task, 2, 3, {"runtime.start_with": 1})
        network.start()
        try:
            network.wait(600)
            time.sleep(5)
            numbers = {name: process.pid for name, process in network.processes.items()}
            before = {name: cpu(number) for name, number in numbers.items()}
            time.sleep(given.seconds)
            print("| idle peer | mapped MB | share MB | own MB | CPU, % of a core |\n|---|---:|---:|---:|---:|")
            for name, number in numbers.items():
                share, spent = memory(number), 100 * (cpu(number) - before[name]) / given.seconds
                print(f"| {name} | {share['mapped']:.0f} | {share['share']:.0f} | {share['own']:.0f} | {spent:.2f} |")
        finally:
            network.stop()


if __name__ == "__main__":
    main()
