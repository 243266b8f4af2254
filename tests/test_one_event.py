"""docs/one-event.md speaks of files, classes and functions that are there."""

import importlib
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "one-event.md").read_text()
TEXT = re.sub(r"\s+", " ", PAGE)
NAMED = re.findall(r"`([\w/]+)\.py`: ?`([\w.]+)`", TEXT)


def test_the_page_names_what_it_speaks_of():
    assert len(NAMED) > 30
    assert len({file for file, _ in NAMED}) > 20


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED)))
def test_every_name_is_where_the_page_says(file, name):
    found = importlib.import_module("pushcen." + file.replace("/", "."))
    for part in name.split("."):
        found = getattr(found, part)


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([A-Z]\w+(?:\.\w+)?)`", TEXT))))
def test_every_other_name_is_in_the_code(name):
    sources = "\n".join(path.read_text() for path in (ROOT / "src" / "pushcen").rglob("*.py"))
    first, *rest = name.split(".")
    assert re.search(rf"^class {first}\b", sources, re.MULTILINE)
    assert all(re.search(rf"^    (?:async )?def {part}\b", sources, re.MULTILINE) for part in rest)


def test_every_file_is_there():
    for file in re.findall(r"`([\w/]+\.py)`", TEXT):
        assert (ROOT / "src" / "pushcen" / file).is_file()
