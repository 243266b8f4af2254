"""Traces, lines, links and graphs from files, all at once: the same bytes however a run goes, and no mass lost."""

import json

import pytest

from pushcen.config import load_config
from pushcen.errors import ConfigError, RunError
from pushcen.methods import DivShare, PushCen, PushCenLean
from pushcen.protocol import audit
from pushcen.runs import Run, launch
from pushcen.runs.forecast import forecast
from pushcen.simulation import ComputeOptions, NeighbourOptions, NetworkOptions, ParticipationOptions
from pushcen.simulation.worlds.day_and_night import day_and_night
from tests.simulation.test_determinism import Stops, files
from tests.simulation.worlds import plain, run, task

FUNCTION = """
import random
def graph(time, clients, seed):
    rng = random.Random(f"{time} {seed}")
    return [(i, j) for i in range(clients) for j in rng.sample([k for k in range(clients) if k != i], 3)]
"""


def sources(folder, name="t"):
    """Write the files of a world, and return the options that name them."""
    folder.mkdir(exist_ok=True)
    trace, links, graph = folder / "trace.json", folder / "links.json", folder / "graphs.json"
    trace.write_text(json.dumps(day_and_night(8, days=1, seed=2, online=(0.7,) * 8 + (0.4,) * 8 + (0.9,) * 8)))
    regions = {"regions": ["a", "b"], "bandwidth": [[900, "4 B/s"], [700, 600]], "latency": [[0.01, 0.2], [0.1, 0]]}
    links.write_text(json.dumps(regions))
    rings = [[[i, (i + step) % 8] for i in range(8) for step in (k, k + 2)] for k in (1, 4)]
    graph.write_text(
        json.dumps({"graphs": [{"time": t, "edges": r} for t, r in zip((0, 1), rings, strict=True)], "period": 2})
    )
    (folder / f"function_{name}.py").write_text(FUNCTION)
    return {
        "horizon": 5.0,
        "time_unit": "4 h",
        "participation": ParticipationOptions(trace=str(trace), crashes=0.25, between=2.0),
        "network": NetworkOptions(
            speeds="flash", speeds_unit="B/d", links=str(links), stragglers=0.5, loss=0.1, notice="doubt", jitter=0.1
        ),
        "compute": ComputeOptions(speeds="lognormal:0.4", stragglers=0.25, slowdown=3.0),
        "neighbours": NeighbourOptions(kind="graph", graph=str(graph)),
    }


METHODS = {
    "pushcen": PushCen(clusters=4, receivers=2, limit=4),
    "lean": PushCenLean(bits=1, renew_after=32, receivers=2),
    "divshare": DivShare(parts=3, receivers=2),
}


@pytest.mark.parametrize("method", METHODS)
def test_the_same_bytes_on_one_thread_and_two_and_after_an_interruption(tmp_path, method):
    options = {**sources(tmp_path / "files", f"r{method}"), "method": METHODS[method]}
    if method == "lean":
        function = f"{tmp_path / 'files'}/function_r{method}.py:graph"
        options["neighbours"] = NeighbourOptions(kind="graph", graph=function, every=0.7)
    run(tmp_path / "one", workers=1, **options)
    first = run(tmp_path / "broken", workers=2, observer=Stops(2), **options)
    assert first["status"] == "interrupted"
    run(tmp_path / "broken", workers=2, resume=True, **options)
    assert files(tmp_path / "broken") == files(tmp_path / "one")
    summary = files(tmp_path / "one")[0]
    assert summary["meters"]["mass"]["exact"]
    assert summary["steps"] > 20
    assert summary["traffic"]["bytes_received"] > 0


def test_no_mass_is_lost_or_made(tmp_path, world_of):
    options = sources(tmp_path / "files", "mass")
    engine = world_of(clients=8, **{**options, "horizon": 20.0})
    acts = 0
    while not engine.over:
        engine.act()
        acts += 1
        if acts % 20 == 0:
            found = audit([node.peer.save() for node in engine.nodes] + engine.presence.left)
            assert found.violations == []
            assert found.held + found.on_links == found.founded
    assert acts > 200


@pytest.mark.parametrize("which", ["trace.json", "links.json", "graphs.json"])
def test_a_run_is_not_resumed_with_another_file(tmp_path, which):
    options = sources(tmp_path / "files", "changed")
    run(tmp_path / "run", observer=Stops(1), **options)
    file = tmp_path / "files" / which
    before = file.read_bytes()
    file.write_bytes(before.replace(b"0.01", b"0.02") if which == "links.json" else before + b"\n")
    keys = {"trace.json": "participation.trace", "links.json": "network.links", "graphs.json": "neighbours.graph"}
    with pytest.raises(RunError, match=rf"is a run of another world: files.{keys[which]} differ"):
        run(tmp_path / "run", resume=True, **options)
    file.write_bytes(before)
    assert run(tmp_path / "run", resume=True, **options)["status"] == "finished"


def test_a_config_knows_its_files_by_their_contents(tmp_path):
    sources(tmp_path / "files", "config")
    trace = tmp_path / "files" / "trace.json"
    values = {"task": {"function": "tests.simulation.worlds:task"}, "clients": 4, "horizon": 0.5, "time_unit": "1 h",
              "participation": {"trace": str(trace)}}  # fmt: skip
    config = load_config(values)
    launch(config, tmp_path / "run")
    there = Run.open(tmp_path / "run")
    assert there.config["files"] == {"participation.trace": config.files["participation.trace"]}
    assert there.identity() == config.identity() == load_config(there.config).identity()
    copy = trace.with_name("copy.json")
    copy.write_bytes(trace.read_bytes())
    moved = load_config({**values, "participation": {"trace": str(copy)}})
    assert moved.files == config.files
    trace.write_text(trace.read_text() + " ")
    with pytest.raises(
        ConfigError, match=r"files.participation.trace = 'sha256:.*': what participation.trace names is"
    ):
        load_config(there.config)
    with pytest.raises(RunError, match=r"holds another run: files.participation.trace is 'sha256:.* there and"):
        launch(load_config(values), tmp_path / "run")
    assert "files" not in load_config({}).plain()


def test_a_dry_run_describes_the_world(tmp_path):
    from pushcen.analysis import forecast_table

    sources(tmp_path / "files", "dry")
    values = {
        "task": {"function": "tests.simulation.worlds:task"}, "clients": 4, "horizon": "2 h", "time_unit": "1 min",
        "participation": {"trace": str(tmp_path / "files" / "trace.json")}, "network": {"speeds": "flash"},
        "compute": {"stragglers": 0.5, "slowdown": 3.0}, "neighbours": {"graph": "ring", "kind": "graph"},
    }  # fmt: skip
    found = forecast(load_config(values), task)
    alone = forecast(load_config({**values, "participation": {}}), task)
    assert 0.3 * alone.events < found.events < 0.95 * alone.events
    assert len(set(found.paces)) > 1
    text = forecast_table(found).to("csv")
    for said in (
        "% of the time",
        "speeds flash",
        ") per unit of time",
        "stragglers 0.5",
        "trace.json",
        "120, 2 h 0 min: about",
        "graph ring",
    ):
        assert said in text


def test_a_world_with_nothing_new_is_what_it_was(tmp_path):
    """Options that change nothing: a slowdown of nobody, and lines of no deviation."""
    usual = plain(run(horizon=2.0, network=NetworkOptions(bandwidth=2000.0, latency=0.1)))
    same = NetworkOptions(bandwidth=2000.0, latency=0.1, slowdown=9.0)
    assert plain(run(horizon=2.0, network=same, compute=ComputeOptions(slowdown=7.0), time_unit="1 s")) == usual
    links = tmp_path / "l.json"
    links.write_text(json.dumps({"bandwidth": [[0] * 8] * 8}))
    through = NetworkOptions(bandwidth=2000.0, latency=0.1, links=str(links), speeds="lognormal:0")
    assert plain(run(horizon=2.0, network=through)) == usual
