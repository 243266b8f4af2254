"""The pictures of the docs are all in one style; matplotlib leaves each text as a comment beside its shapes."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PICTURES = sorted((ROOT / "docs" / "pictures").iterdir())


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_a_picture_is_an_svg_that_speaks_to_readers_and_that_a_page_shows(picture):
    assert picture.suffix == ".svg"
    texts = re.findall(r"<!-- (.*?) -->", picture.read_text("utf-8"))
    assert texts
    code = [text for text in texts if re.search(r"mathdefault|[a-z_]=[\w.]|async-dfedavg|pushcen", text)]
    assert [text for text in code if "Dirichlet(alpha=" not in text] == []
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert any(f"pictures/{picture.name})" in page.read_text("utf-8") for page in pages)
