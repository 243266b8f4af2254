"""Run folders made by hand, in the format that the simulator writes: for tests of what reads them."""

import json
import math
from pathlib import Path
from random import Random

from pushcen.simulation import ParticipationOptions

SPEED = {"pushcen": (0.93, 0.35), "async-dfedavg": (0.94, 0.33), "swift": (0.90, 0.28), "divshare": (0.88, 0.3)}
BYTES = {"pushcen": 130_000, "async-dfedavg": 766_000, "swift": 612_000, "divshare": 306_000}


def make_run(folder: Path, method="pushcen", seed=0, clients=10, horizon=10, finished=True, options=()) -> Path:
    folder.mkdir(parents=True)
    lines = [f"clients = {clients}", f"seed = {seed}", f"horizon = {horizon}.0", "[method]", f'name = "{method}"']
    lines += [f"{key} = {json.dumps(value)}" for key, value in dict(options).items()]
    lines += ["[data]", 'source = "digits"', "alpha = 0.4"]
    lines += ["[participation]", "delayed = 0.2", "earliest = 2.0", "latest = 6.0"]
    (folder / "config.toml").write_text("\n".join(lines) + "\n")
    rng, (top, rate) = Random(f"{method}{seed}"), SPEED.get(method, (0.8, 0.2))
    joins = ParticipationOptions(delayed=0.2, earliest=2.0, latest=6.0).join_times(clients, seed)
    rows = []
    for time in range(horizon + 1):
        each = [
            None if time < joins.get(c, 0) else top * (1 - math.exp(-rate * time)) + rng.uniform(0, 0.05)
            for c in range(clients)
        ]
        there = [value for value in each if value is not None]
        late = [each[c] for c in joins if each[c] is not None]
        rows.append(
            {
                "time": float(time),
                "accuracy": sum(there) / len(there),
                "accuracy_sd": 0.08,
                "accuracy_worst_tenth": min(there),
                "delayed_accuracy": sum(late) / len(late) if late else None,
                "loss": 2 / (1 + time),
                "online": len(there),
                "clients": {str(c): value for c, value in enumerate(each) if value is not None},
                "bytes_sent": time * 10 * BYTES.get(method, 0),
                "bytes_per_push": BYTES.get(method, 0),
                "delayed_best": max(late, default=None),
                "steps": time * 10,
                "events": time * 60,
                "flops": time * 1e9,
            }
        )
        if method == "pushcen":
            rows[-1] |= {"mass_held": 0.5 + 0.04 * time, "mass_destroyed": 0.0, "consensus_error": 3 / (1 + time)}
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if finished:
        summary = {
            "status": "finished",
            "final": rows[-1],
            "delayed": {"clients": 2, "best": 0.8},
            "times": {"build": 1.0, "run": 12.5},
        }
        (folder / "summary.json").write_text(json.dumps(summary))
    return folder
