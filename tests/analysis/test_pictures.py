"""The pictures of the docs are all in one style; matplotlib leaves each text as a comment beside its shapes."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PICTURES = sorted((ROOT / "docs" / "pictures").iterdir())
SCREENS = {"watch.png"}  # what a browser shows, drawn by scripts/draw_watch.py


def pages_with(picture):
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    return [page.name for page in pages if f"pictures/{picture.name})" in page.read_text("utf-8")]


@pytest.mark.parametrize("name", sorted(SCREENS))
def test_a_screenshot_is_small_and_a_page_shows_it(name):
    picture = ROOT / "docs" / "pictures" / name
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 300_000
    assert "README.md" in pages_with(picture)


@pytest.mark.parametrize("picture", [path for path in PICTURES if path.name not in SCREENS], ids=lambda path: path.name)
def test_a_picture_is_an_svg_that_speaks_to_readers_and_that_a_page_shows(picture):
    assert picture.suffix == ".svg"
    texts = re.findall(r"<!-- (.*?) -->", picture.read_text("utf-8"))
    assert texts
    code = [text for text in texts if re.search(r"mathdefault|[a-z_]=[\w.]|async-dfedavg|pushcen", text)]
    assert [text for text in code if "Dirichlet(alpha=" not in text] == []
    assert pages_with(picture)
