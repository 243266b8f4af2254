"""The command line: quick to answer, and true to its version."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import pushcen
from pushcen.cli import app

HEAVY = ("torch", "datasets", "ray", "grpc", "numba", "numpy", "sklearn", "networkx", "matplotlib")


@pytest.mark.parametrize("arguments", ["['--help']", "['--version']", "None"])
def test_help_and_version_import_nothing_heavy(arguments):
    program = f"""
import sys
from pushcen.cli import app
if {arguments} is not None:
    try:
        app({arguments})
    except SystemExit:
        pass
heavy = [name for name in {HEAVY!r} if name in sys.modules]
sys.exit(f"imported {{heavy}}" if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_version_is_the_packages():
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output.strip() == f"pushcen {pushcen.__version__}"
