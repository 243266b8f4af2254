"""A virtual environment for each tool, which pip fills once."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from pushcen.data.sources import cache_folder
from pushcen.errors import PushcenError

LIMIT = 3600.0  # seconds for one command of pip's


class ToolError(PushcenError):
    """Another tool cannot be installed or run here; the text says why."""


def plain_environment() -> dict[str, str]:
    """Return the variables of this process without those that say where Python is, or how memory is kept."""
    out = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "MALLOC_")
    return {name: value for name, value in os.environ.items() if not name.startswith(out)}


def installed(name: str, requirements: Sequence[str]) -> Path:
    """Return the Python of an environment that has these; what is there from an earlier time is used again.

    torch is of the version that is here, as any other would be a download of gigabytes and another training.
    """
    folder = cache_folder() / "peers" / name
    wanted = [f"torch=={version('torch').partition('+')[0]}", *requirements] if requirements else []
    python, done = folder / "bin" / "python", folder / "installed.json"  # which is written last
    if python.exists() and done.exists() and done.read_text() == json.dumps(wanted):
        return python
    shutil.rmtree(folder, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(folder)])
    if wanted:
        pip(python, "install", *wanted)
    done.write_text(json.dumps(wanted))
    return python


def pip(python: Path, *arguments: str) -> None:
    """Run pip in an environment; if it fails, its last error is the reason."""
    _run([str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments])


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, env=plain_environment(), capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise ToolError(f"not installed: pip was still at it after {LIMIT:.0f} s") from None
    if done.returncode:
        raise ToolError(f"not installed: {last_line(done.stderr) or last_line(done.stdout) or done.returncode}")


def last_line(text: str) -> str:
    r"""Return the last line that says something, the last error if lines are marked so, at most 300 characters of it.

    >>> last_line("\x1b[31mERROR: No matching distribution found for x\x1b[0m\n\n[notice] there is a new pip\n")
    'ERROR: No matching distribution found for x'
    """
    lines = [line.strip() for line in re.sub(r"\x1b\[[\d;]*[A-Za-z]", "", text).splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or [""])[-1][:300]
