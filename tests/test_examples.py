"""The examples run, in a small form."""

import os
import pathlib
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).parent.parent / "examples"


def test_the_example_with_a_task_of_ones_own_runs(tmp_path):
    env = os.environ | {"CLIENTS": "6", "HORIZON": "2", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(EXAMPLES)}
    done = subprocess.run(
        [sys.executable, EXAMPLES / "own_task.py"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "| independent |" in done.stdout
    assert {"signals.png", "signals_bytes.png"} <= {path.name for path in tmp_path.iterdir()}
