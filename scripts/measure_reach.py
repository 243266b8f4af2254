"""Print how eight peers of which five can only dial out fare beside eight that all listen, for docs/runtime.md.

`python scripts/measure_reach.py` makes six runs of real processes, of two minutes each on two idle cores. Each peer is
in a network namespace of its own; those that only dial out are behind NAT and a firewall that lets port 443 out (root
is needed, and the command ip). Each run leaves a file in the folder, and is not made again: `--kind hidden --seed 1`
makes one of them.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from pushcen.runtime.audit import examine
from pushcen.runtime.rows import scores

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.runtime.namespaces.router import missing
from tests.runtime.namespaces.sites import Wards, only

NAMES = [f"p{number}" for number in range(8)]
KINDS = {"open": 0, "hidden": 5}
"""How many of them only dial out."""
SETTINGS = {
    "pause": 0.4, "start_with": len(NAMES) - 1, "start_timeout": 600, "hello_timeout": 10, "patience": 2,
    "evaluate_every": 10,
}  # fmt: skip


def measure(kind: str, seed: int, events: int) -> dict[str, float | int | str | bool]:
    """Train on digits until every peer has had its events; return the mean accuracy, each on its own test data."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, Wards(Path(folder), NAMES, **SETTINGS) as wards:
        for number, name in enumerate(NAMES):
            wards.add(name, **({"allow": only(443)} if number >= len(NAMES) - KINDS[kind] else {}))
        for name in NAMES:
            wards.peer(name, "--events", str(events), "--set", f"seed={seed}", task="digits")
        for name in NAMES:
            while "training is done" not in wards.log(name):
                if any(process.poll() is not None for process in wards.processes.values()):
                    sys.exit(wards.logs())
                time.sleep(0.5)
        wards.stop()
        states = [wards.state(name) for name in NAMES]
        reached = [scores(state)["score"] for state in states]
        row = {"kind": kind, "seed": seed, "events": events, "accuracy": statistics.fmean(reached)}
        row |= {"least": min(reached), "exact": examine(states).sound}
        return {**row, "seconds": round(time.monotonic() - begin)}


def main() -> None:
    """Make the runs that are not there yet, and print all that are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=list(KINDS), action="append", help="which [both]")
    parser.add_argument("--seed", type=int, action="append", help="which [0, 1, 2]")
    parser.add_argument("--events", type=int, default=150, help="compute events of each peer [150]")
    parser.add_argument("--folder", type=Path, default=Path("runs/reach"), help="where results go [runs/reach]")
    given = parser.parse_args()
    if missing():
        sys.exit(missing())
    given.folder.mkdir(parents=True, exist_ok=True)
    for seed in given.seed or (0, 1, 2):
        for kind in given.kind or KINDS:
            path = given.folder / f"{kind}-{seed}-{given.events}.json"
            if not path.exists():
                path.write_text(json.dumps(measure(kind, seed, given.events)) + "\n")
    rows = [json.loads(path.read_text()) for path in sorted(given.folder.glob(f"*-{given.events}.json"))]
    print("| kind | seed | accuracy % | least of a peer % | mass exact | seconds |\n|---|---:|---:|---:|---|---:|")
    for row in rows:
        print(
            f"| {row['kind']} | {row['seed']} | {100 * row['accuracy']:.2f} | {100 * row['least']:.2f} "
            f"| {'yes' if row['exact'] else 'NO'} | {row['seconds']} |"
        )
    for kind, hidden in KINDS.items():
        reached = [100 * row["accuracy"] for row in rows if row["kind"] == kind]
        if len(reached) > 1:
            mean, spread = statistics.fmean(reached), statistics.stdev(reached)
            print(
                f"{len(NAMES)} peers, {hidden} of which dial out: {mean:.2f} % (SD {spread:.2f}, {len(reached)} seeds)"
            )


if __name__ == "__main__":
    main()
