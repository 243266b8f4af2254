"""What `import pushcen` offers, and what it costs."""

import subprocess
import sys

import pytest

import pushcen
from tests.test_cli import HEAVY

PROGRAM = f"""
import sys
import pushcen
assert set(pushcen.__all__) <= set(dir(pushcen))
heavy = [name for name in {HEAVY!r} if name in sys.modules]
ours = [name for name in sys.modules if name.startswith("pushcen.")]
sys.exit(f"imported {{heavy}}" if heavy else 0 if len(ours) < 4 else f"imported {{ours}}")
"""


def test_importing_it_imports_nothing_heavy_and_little_of_its_own():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_everything_that_it_names_is_there_and_is_what_it_is_elsewhere():
    from pushcen.api import compare, simulate
    from pushcen.learning import Task
    from pushcen.methods import PushCen
    from pushcen.simulation import World

    assert all(hasattr(pushcen, name) for name in pushcen.__all__)
    assert (pushcen.Task, pushcen.PushCen, pushcen.World) == (Task, PushCen, World)
    assert (pushcen.simulate, pushcen.compare) == (simulate, compare)
    with pytest.raises(AttributeError, match="module 'pushcen' has no attribute 'Tusk'"):
        pushcen.Tusk  # noqa: B018


def test_the_runtime_is_not_imported_before_it_is_asked_for():
    program = """
import sys
import pushcen.runtime.options
assert "grpc" not in sys.modules
from pushcen.runtime import *
assert "grpc" in sys.modules and callable(run_peer) and callable(audit_folders) and callable(weights_of)
assert Authority and Certified and Setup and RuntimeOptions
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_world_is_simulated_as_the_config_that_it_is(tmp_path):
    world = pushcen.World(pushcen.PushCen(clusters=8), clients=3, horizon=0.5, seed=2)
    result = pushcen.simulate(world, folder=tmp_path / "a")
    assert isinstance(result, pushcen.Result)
    assert (result.run.config["method"]["clusters"], result.run.config["seed"]) == (8, 2)
    values = {"clients": 3, "horizon": 0.5, "seed": 2, "method": {"clusters": 8}}
    assert pushcen.simulate(values, folder=tmp_path / "a").summary == result.summary


def test_the_simulator_knows_nothing_of_configs_folders_of_runs_or_reports():
    program = """
import sys
import pushcen.simulation
above = [name for name in sys.modules if name.startswith(("pushcen.config", "pushcen.runs", "pushcen.analysis"))]
sys.exit(f"imported {above}" if above else 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
