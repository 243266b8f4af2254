"""The page of results says what the committed runs say."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def test_every_table_of_the_page_is_what_its_command_prints():
    command = [sys.executable, "scripts/write_results.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
