"""The README's example runs, and its numbers are what comes out."""

import pathlib
import re

README = (pathlib.Path(__file__).parent.parent / "README.md").read_text()


def test_the_example_runs_as_it_stands():
    (program,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names = {}
    exec(program, names)
    assert f"{len(names['data']):,} bytes instead of {4 * names['schema'].size:,}" in program
    assert names["merged"].weight == 4
