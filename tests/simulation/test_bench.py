"""The benchmark of the simulator, on small worlds: that it runs, and what does not depend on the machine."""

import json

import pytest
from typer.testing import CliRunner

from pushcen.bench import simulator
from pushcen.cli import app

GOALS = (
    "overhead_vs_training", "scaling_2_threads", "memory_per_client", "events_per_second", "recorder_cpu_share",
)  # fmt: skip


@pytest.mark.slow
def test_the_command_prints_what_it_measured(monkeypatch):
    monkeypatch.setattr(simulator, "CLIENTS", 8)
    monkeypatch.setattr(simulator, "STEPS", 1)
    monkeypatch.setattr(simulator, "SIZES", {20: 4.0, 30: 4.0})
    monkeypatch.setattr(simulator, "_in_a_process", lambda function: {"memory_per_client": 1.0})
    monkeypatch.setattr(simulator, "_processes", lambda pool: 1.0)
    result = CliRunner().invoke(app, ["bench", "simulator", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert set(GOALS) < set(found)
    assert found["steps"] == 16
    assert set(found["events_per_second"]) == {"20", "30"}


@pytest.mark.slow
def test_a_thousand_lenets_fit_into_one_process():
    assert simulator._in_a_process(simulator._memory)["memory_per_client"] <= 1.6


def test_the_record_takes_less_than_three_hundredths_of_the_time(monkeypatch):
    monkeypatch.setattr(simulator, "CLIENTS", 20)
    assert 0 < simulator._recorder() < 0.03
