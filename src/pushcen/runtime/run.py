"""A real network's measurements as a run folder, in the simulator's format: `pushcen report` draws both."""

import statistics
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pushcen.folder import REAL, Folder, Row, number
from pushcen.measure import Measure, read, written
from pushcen.protocol import UNIT, Audit
from pushcen.runtime.local import LocalNetwork

if TYPE_CHECKING:
    from pushcen.config import Config


def write_run(network: LocalNetwork, config: "Config", found: Audit, since: float | None = None) -> Row:
    """Write config, metrics and summary of a network that has stopped; return the summary.

    Time begins at `since`, by the wall clock, or with the first row.
    """
    rows = merged({name: network.rows(name) for name in network.names}, (found.founded or UNIT) / UNIT, since)
    measures = read(rows[-1] if rows else None)
    last = rows[-1] if rows else {"time": 0.0, "accuracy": None, "bytes_sent": 0}
    newest = [own[-1] for name in network.names if (own := network.rows(name))]
    mass = found.figures()  # mailboxes are gone with their peers: what waited there is under way again
    summary = {
        "status": "finished",
        "world": REAL,
        "clients": len(network.names),
        "method": type(config.method).name,
        "seed": config.seed,
        "time": last["time"],
        "events": sum(row["events"] for row in newest),
        "steps": sum(row["events"] for row in newest),
        "flops": sum(row["flops"] for name in network.names for row in network.rows(name)),
        "times": {"run": last["time"]},
        "final": last,
        f"best_{measures[0].name}": _best(rows, measures[0]),
        "traffic": {
            "bytes_sent": sum(row["bytes_out"] for row in newest),
            "bytes_received": sum(row["bytes_in"] for row in newest),
        },
        "meters": {"mass": {"exact": mass["mass_exact"], **mass}},
        **written(measures),
    }
    folder = Folder(network.folder)
    folder.write_config(config.plain())
    with folder.opened():
        folder.begin(metrics_bytes=0)
        for row in rows:
            folder.write_row(row)
        folder.write_summary(summary)
        folder.write_status("finished", time=last["time"])
    return summary


def _best(rows: list[Row], measure: Measure) -> Row | None:
    """Return the first row with the best mean."""
    best = measure.best(row[measure.name] for row in rows)
    return next((row for row in rows if row[measure.name] == best), None)


def merged(by_peer: Mapping[str, list[Row]], founded: float, since: float | None = None) -> list[Row]:
    """Merge what peers measured into one series: a row whenever one has evaluated, with the newest of all others.

    The first row says by which metric; a peer that has another one does not count.

    >>> at = {"events": 1, "bytes_out": 9, "held": 1.0, "waiting": 0.0, "loss": 1.0}
    >>> peers = {"a": [{"time": 5.0, "accuracy": 0.5, **at}], "b": [{"time": 6.0, "accuracy": 0.75, **at}]}
    >>> [(row["time"], row["accuracy"], row["clients"]) for row in merged(peers, founded=2)]
    [(0.0, 0.5, {'a': 0.5}), (1.0, 0.625, {'a': 0.5, 'b': 0.75})]
    """
    newest: dict[str, Row] = {}
    scored: dict[str, Row] = {}
    found: list[Row] = []
    said = read(next((rows[0] for rows in by_peer.values() if rows), None))
    measures = [measure._replace(pooled=False) for measure in said]  # nobody sees the outputs of all
    everything = sorted((row["time"], name, at) for name, rows in by_peer.items() for at, row in enumerate(rows))
    begun = since if since is not None else everything[0][0] if everything else 0.0
    for time, name, at in everything:
        row = newest[name] = by_peer[name][at]
        if number(row, measures[0].name) is None:
            continue
        scored[name] = row
        events, sent = (sum(one[what] for one in newest.values()) for what in ("events", "bytes_out"))
        found.append({
            "time": max(0.0, round(time - begun, 3)),
            **{key: value for one in measures for key, value in figures(one, list(scored.values())).items()},
            **written(measures),
            "clients": {peer: one[measures[0].name] for peer, one in scored.items()},
            "online": len(newest),
            "events": events,
            "steps": events,
            "bytes_sent": sent,
            "bytes_per_push": sent / events,
            "train_loss": statistics.fmean(one["loss"] for one in newest.values()),
            "mass_held": sum(one["held"] for one in newest.values()) / founded,
            "mass_waiting": sum(one["waiting"] for one in newest.values()) / founded,
        })  # fmt: skip
    return found


def figures(measure: Measure, rows: list[Row]) -> Row:
    """Return a metric's mean, standard deviation and worst tenth over peers' rows that have it."""
    values = [value for row in rows if (value := number(row, measure.name)) is not None]
    if not values:
        return {}
    return {
        measure.name: statistics.fmean(values),
        f"{measure.name}_sd": statistics.pstdev(values),
        f"{measure.name}_worst_tenth": statistics.fmean(measure.worst_tenth(values)),
    }
