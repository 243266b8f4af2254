"""What a peer logs, for people and for programs; its figures, as docs and dashboard name them."""

import io
import json
import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pushcen.errors import OptionError
from pushcen.runtime import logs
from pushcen.runtime.local import free_ports
from pushcen.runtime.metrics import Metrics

from .world import World, run, until

ROOT = Path(__file__).parents[2]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("form", "stream", "people"),
    [("auto", io.StringIO, False), ("auto", Terminal, True), ("text", io.StringIO, True), ("json", Terminal, False)],
)
def test_lines_are_for_people_on_a_terminal_and_json_else(monkeypatch, form, stream, people):
    monkeypatch.setattr(sys, "stderr", stream())
    logs.set_up("info", form)
    log = logs.Log("ann")
    log.say("listening", address="ann:7000", boot=2)
    log.warn("something is wrong", kind="alone", text="nobody answers\x1b[2J\nann: left", hint="join")
    first, second = sys.stderr.getvalue().splitlines()
    if people:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ann: listening \(address ann:7000, boot 2\)", first)
        assert second.endswith("warning: something is wrong: nobody answers?[2J?ann: left: join (kind alone)")
    else:
        assert json.loads(first)["event"] == "listening"
        assert json.loads(second)["text"] == "nobody answers\x1b[2J\nann: left"


def test_another_format_is_refused():
    with pytest.raises(OptionError, match="log-format = 'xml': must be one of auto, text, json"):
        logs.set_up("info", "xml")


def test_the_log_tells_the_story(tmp_path, caplog):
    async def story():
        world = World(tmp_path, ("p0", "p1"), pause=0.05, evaluate_every=2, start_with=1)
        await world.start("p0", "p1", events=20)
        for name in world.names:
            world.node(name).log._every = 0.0  # every line that may be said
        await until(lambda: all(world.node(name).seen.phase == "done" for name in world.names))
        await world.stop("p1")
        await until(lambda: any(line.message == "no answer" for line in caplog.records))
        await world.stop()

    with caplog.at_level("INFO"):
        run(story())
    mine = [line for line in caplog.records if getattr(line, "fields", {}).get("peer") == "p0"]
    told = [line.message for line in mine]
    order = ["listening", "training begins", "trained", "training is done; others are still answered", "stopped"]
    assert [told.index(event) for event in order] == sorted(told.index(event) for event in order)
    assert "a neighbour is met" in told
    trained = [line.fields for line in mine if line.message == "trained"]
    assert [one["events"] for one in trained][-2:] == [18, 20]
    assert all(one["score"].startswith("accuracy ") for one in trained)
    assert "p1" in {name for one in trained for name in one["pushes_from"].split(", ")}


def figures():
    """Return all metrics: names as Prometheus has them, with labels and kind."""
    registry = Metrics("ann").registry
    found = {}
    for family in registry.collect():
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = registry._names_to_collectors[name if family.type != "histogram" else family.name]._labelnames
        found[name] = (",".join(labels), family.type)
    return found


def test_the_docs_name_every_metric_and_no_other():
    text = (ROOT / "docs" / "runtime.md").read_text("utf-8")
    rows = re.findall(r"^\| `(pushcen_\w+)(?:\{(\w+)\})?` \| (\w+) \|", text, re.MULTILINE)
    assert {name: (labels, kind) for name, labels, kind in rows} == figures()


def test_the_dashboard_shows_every_metric_and_no_other():
    board = json.loads((ROOT / "deploy" / "grafana" / "pushcen.json").read_text("utf-8"))
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    named = {name.removesuffix("_bucket") for expr in asked for name in re.findall(r"pushcen_\w+", expr)}
    assert named == set(figures())
    for expr in asked:  # labels that are asked for or summed by are there
        [name] = set(re.findall(r"pushcen_\w+", expr))
        labels = set(re.findall(r"(\w+)=~?\"", expr)) | set(re.findall(r"by \(([\w, ]+)\)", expr.replace(", ", ",")))
        labels = {label for some in labels for label in some.split(",")} - {"instance", "le"}
        assert labels <= set(figures()[name.removesuffix("_bucket")][0].split(",")), expr
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    places = [panel["gridPos"] for panel in board["panels"]]
    cells = [
        (x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(set(cells)) == len(cells)  # none lies on another
    assert max(x for x, _ in cells) < 24


def test_the_level_of_the_log_is_kept(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    logs.set_up("warning", "json")
    logs.Log("ann").say("listening")
    assert sys.stderr.getvalue() == ""
    assert logging.root.level == logging.WARNING


def test_a_start_says_what_it_waits_for(tmp_path):
    words = [
        "peer",
        "tests.runtime.tasks:tiny",
        "--insecure",
        "ann",
        "--founders",
        "ann",
        "--state",
        str(tmp_path / "s"),
    ]
    command = [sys.executable, "-m", "pushcen", *words, "--listen", f"127.0.0.1:{free_ports(1)[0]}"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        said = []
        while process.poll() is None and "training begins" not in said:
            line = process.stderr.readline()
            said += [json.loads(line)["event"]] if line.startswith("{") else []
    finally:
        process.kill()
        process.communicate()
    assert said[:4] == ["loading PyTorch", "loading the task", "preparing the codec", "listening"]
