"""The README's examples run, and their numbers are what comes out."""

import pathlib
import re

README = (pathlib.Path(__file__).parent.parent / "README.md").read_text()


def test_the_examples_run_as_they_stand():
    codec, protocol = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names = {}
    exec(codec, names)
    assert f"{len(names['data']):,} bytes instead of {4 * names['schema'].size:,}" in codec
    assert names["merged"].weight == 4
    exec(protocol, names)
    assert names["bob"].waiting == 3 * names["UNIT"] // 4
