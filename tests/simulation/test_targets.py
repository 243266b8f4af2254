"""Targets in the summary: what it took until each was held twice in a row, resumed or not."""

import json

import pytest

from pushcen.analysis.targets import reached
from pushcen.errors import OptionError
from pushcen.runs import Run
from pushcen.simulation import EvaluationOptions
from tests.simulation.test_determinism import Stops
from tests.simulation.worlds import run

OPTIONS = {"horizon": 4.0, "evaluation": EvaluationOptions(every=0.5, targets=(55.0, 99.9))}


def test_the_summary_has_what_tables_have(tmp_path):
    summary = run(tmp_path / "run", **OPTIONS)
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    at = next(i for i in range(len(rows) - 1) if min(rows[i]["accuracy"], rows[i + 1]["accuracy"]) >= 0.55)
    found = {name: rows[at][name] for name in ("time", "steps", "bytes_sent", "accuracy")}
    assert summary["targets"] == {"55": {"row": at, **found}, "99.9": None}
    config = "[method]\nname = 'pushcen'\n"
    (tmp_path / "run" / "config.toml").write_text(config)
    spent = reached(Run.open(tmp_path / "run"), 55.0)
    assert (spent.bytes_sent, spent.steps, spent.time) == (found["bytes_sent"], found["steps"], found["time"])
    assert spent.seconds == summary["times"]["rows"][at]


def test_a_resumed_run_remembers_what_came_before(tmp_path):
    whole = run(tmp_path / "whole", **OPTIONS)
    assert run(tmp_path / "broken", observer=Stops(3), **OPTIONS)["status"] == "interrupted"
    assert run(tmp_path / "broken", resume=True, **OPTIONS)["targets"] == whole["targets"]


def test_targets_may_be_asked_for_when_a_run_goes_on(tmp_path):
    plain = {"horizon": 4.0, "evaluation": EvaluationOptions(every=0.5)}
    run(tmp_path / "broken", observer=Stops(3), **plain)
    assert run(tmp_path / "broken", resume=True, **OPTIONS)["targets"] == run(tmp_path / "whole", **OPTIONS)["targets"]
    assert "targets" not in run(tmp_path / "plain", **plain)


def test_a_share_in_place_of_percent_is_refused(tmp_path):
    with pytest.raises(OptionError, match=r"evaluation\.targets = 0\.6: must be in percent.*60 for 60 %"):
        run(tmp_path, evaluation=EvaluationOptions(targets=(0.6,)))
