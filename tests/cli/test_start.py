"""A run starts quickly: nothing is compiled twice, and nothing is imported that it does not use."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from pushcen.cli import app

PROGRAM = """
import sys
from pushcen.cli import app
try:
    app(["simulate", "--clients", "2", "--horizon", "0.5", "--runs", sys.argv[1], "--name", sys.argv[2]])
finally:
    print(*sys.modules, file=open(sys.argv[2] + ".modules", "w"))
"""
UNUSED = ("torch._dynamo", "sympy", "sklearn", "scipy.stats", "pandas", "pyarrow", "datasets", "flwr_datasets", "grpc")


def test_a_second_start_compiles_nothing_and_none_imports_what_it_does_not_use(tmp_path):
    kernels = tmp_path / "kernels"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(kernels)}
    kept = []
    for name in ("first", "second"):
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "runs"), name]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        kept.append({file: file.stat().st_mtime_ns for file in kernels.rglob("*.nb?")})
        imported = set((tmp_path / f"{name}.modules").read_text().split())
        assert imported.isdisjoint(UNUSED), imported.intersection(UNUSED)
    assert len(kept[0]) > 10
    assert kept[0] == kept[1]


@pytest.mark.slow
def test_the_benchmark_says_where_the_time_goes():
    result = CliRunner().invoke(app, ["bench", "start", "--rounds", "1", "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    for start in figures.values():
        parts = [start[name] for name in ("imports", "kernels", "data", "run")]
        assert min(parts) > 0
        assert sum(parts) == pytest.approx(start["table"], abs=0.05)
    assert figures["cold"]["kernels"] > 2 * figures["warm"]["kernels"]
