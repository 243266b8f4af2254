"""The README's examples run, and their numbers are what comes out."""

import pathlib
import re

from pushcen.learning import Learner, Work, build_task

README = (pathlib.Path(__file__).parent.parent / "README.md").read_text()


def test_the_examples_run_as_they_stand():
    task, codec, protocol = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names = {}
    exec(task, names)
    assert Learner(build_task(names["task"], 3, 10)).step(Work(1, [])).steps == 5
    exec(codec, names)
    assert f"{len(names['data']):,} bytes instead of {4 * names['schema'].size:,}" in codec
    assert names["merged"].weight == 4
    exec(protocol, names)
    assert names["bob"].waiting == 3 * names["UNIT"] // 4
