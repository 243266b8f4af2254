"""Write the tables of docs/results.md again, from the committed runs in results/. `--check` only tells if they changed.

A table stands between `<!-- pushcen reproduce ... -->`, `<!-- pushcen report ... -->`, or
`<!-- python scripts/measure_own_tasks.py --table ... -->`, and `<!-- end -->`; the comment is the command that made it.
"""

import contextlib
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from measure_own_tasks import TABLES
from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.cli.reproduce import COUNTED

ROOT = pathlib.Path(__file__).parent.parent
PAGE, RESULTS = ROOT / "docs" / "results.md", ROOT / "results"
OWN = "python scripts/measure_own_tasks.py --table "
BLOCK = re.compile(rf"<!-- ((?:pushcen (?:reproduce|report) |{re.escape(OWN)})[^>]*?) -->\n.*?<!-- end -->", re.DOTALL)


def made(block):
    """Run a block's command on the committed runs, and put the command and its table between the comments."""
    command = block.group(1)
    if command.startswith(OWN):
        table = TABLES[command.removeprefix(OWN)]().to("markdown")
    else:
        table = reproduced(command) if command.startswith("pushcen reproduce") else reported(command)
    return f"<!-- {command} -->\n    {command}\n\n{table}\n<!-- end -->"


def reproduced(command):
    """Return the table that a command of `pushcen reproduce` prints of the committed runs."""
    words = shlex.split(command)[1:]
    with tempfile.TemporaryDirectory() as empty:
        shown = [] if words[1] in COUNTED else ["--show", "--runs", empty, "--also", str(RESULTS)]
        return printed([*words, *shown, "--table", "markdown"])


def reported(command):
    """Return the table that a command of `pushcen report` prints; bash spells out its runs."""
    spelled = subprocess.run(["bash", "-c", f"printf '%s\\n' {command}"], cwd=ROOT, capture_output=True, check=True)
    _, *words = spelled.stdout.decode().splitlines()
    with contextlib.chdir(ROOT):
        return printed([*words, "--table", "markdown"])


def printed(words):
    """Return what a command of pushcen prints, or end with what it says."""
    result = CliRunner().invoke(app, words)
    if result.exit_code:
        sys.exit(f"pushcen {' '.join(words)}: {result.output}")
    return result.stdout.strip()


def main():
    before = PAGE.read_text("utf-8")
    after = BLOCK.sub(made, before)
    if "--check" in sys.argv:
        sys.exit(before != after and f"{PAGE.name} is not what {RESULTS.name}/ says: run scripts/write_results.py")
    PAGE.write_text(after, "utf-8")


if __name__ == "__main__":
    main()
