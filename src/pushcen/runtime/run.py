"""A real network's measurements as a run folder, in the simulator's format: `pushcen report` draws both."""

import json
import math
import statistics
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pushcen.files import write_whole
from pushcen.protocol import UNIT, Audit
from pushcen.runtime.local import LocalNetwork

if TYPE_CHECKING:
    from pushcen.config import Config

Row = dict[str, Any]


def write_run(network: LocalNetwork, config: "Config", found: Audit) -> Row:
    """Write config, metrics and summary of a network that has stopped; return the summary."""
    from pushcen.config import write_toml

    rows = merged({name: network.rows(name) for name in network.names})
    last = rows[-1] if rows else {"time": 0.0, "accuracy": None, "bytes_sent": 0}
    newest = [own[-1] for name in network.names if (own := network.rows(name))]
    mass = {"founded": found.founded, "held": found.held, "on_links": found.on_links, "lost": found.written_off}
    summary = {
        "status": "finished",
        "clients": len(network.names),
        "method": type(config.method).name,
        "seed": config.seed,
        "time": last["time"],
        "events": sum(row["events"] for row in newest),
        "steps": sum(row["events"] for row in newest),
        "flops": sum(row["flops"] for name in network.names for row in network.rows(name)),
        "times": {"run": last["time"]},
        "final": last,
        "best_accuracy": max(rows, key=lambda row: row["accuracy"], default=None),
        "traffic": {
            "bytes_sent": sum(row["bytes_out"] for row in newest),
            "bytes_received": sum(row["bytes_in"] for row in newest),
        },
        "meters": {"mass": {name: value / UNIT for name, value in mass.items()} | {"exact": found.balanced}},
    }
    write_toml(config.plain(), network.folder / "config.toml")
    write_whole(network.folder / "metrics.jsonl", b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    write_whole(network.folder / "summary.json", json.dumps(summary, indent=2).encode() + b"\n")
    return summary


def merged(by_peer: Mapping[str, list[Row]]) -> list[Row]:
    """Merge what peers measured into one series: a row whenever one has evaluated, with the newest of all others.

    >>> at = {"events": 1, "bytes_out": 9, "held": 1.0, "loss": 1.0}
    >>> peers = {"a": [{"time": 5.0, "accuracy": 0.5, **at}], "b": [{"time": 6.0, "accuracy": 0.75, **at}]}
    >>> [(row["time"], row["accuracy"], row["clients"]) for row in merged(peers)]
    [(0.0, 0.5, {'a': 0.5}), (1.0, 0.625, {'a': 0.5, 'b': 0.75})]
    """
    newest: dict[str, Row] = {}
    scores: dict[str, float] = {}
    found: list[Row] = []
    everything = sorted((row["time"], name, at) for name, rows in by_peer.items() for at, row in enumerate(rows))
    for time, name, at in everything:
        row = newest[name] = by_peer[name][at]
        if row["accuracy"] is None:
            continue
        scores[name] = row["accuracy"]
        values = sorted(scores.values())
        events, sent = (sum(one[what] for one in newest.values()) for what in ("events", "bytes_out"))
        found.append({
            "time": round(time - everything[0][0], 3),
            "accuracy": statistics.fmean(values),
            "accuracy_sd": statistics.pstdev(values),
            "accuracy_worst_tenth": statistics.fmean(values[: math.ceil(len(values) / 10)]),
            "clients": dict(scores),
            "online": len(newest),
            "events": events,
            "steps": events,
            "bytes_sent": sent,
            "bytes_per_push": sent / events,
            "train_loss": statistics.fmean(one["loss"] for one in newest.values()),
            "meters": {"mass": {"held": sum(one["held"] for one in newest.values())}},
        })  # fmt: skip
    return found
