"""A user's own thing is found in what is installed, in the current folder, or in a file."""

import sys

import pytest

from pushcen.errors import OptionError
from pushcen.locate import locate


@pytest.fixture(autouse=True)
def _modules_go_again(monkeypatch):
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_file_is_imported_once_whatever_its_path_is_written_like(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "located_for_a_test.py").write_text("made = []\nthing = 5\n")
    monkeypatch.chdir(tmp_path)
    assert locate("inner/located_for_a_test.py:thing", "task") == 5
    made = locate("inner/located_for_a_test.py:made", "task")
    assert locate(f"{tmp_path}/inner/../inner/located_for_a_test.py:made", "task") is made


def test_a_file_may_import_those_beside_it_but_stands_in_for_no_library(tmp_path):
    (tmp_path / "located_for_a_test.py").write_text("import beside_ours, colorsys\nthing = beside_ours.thing\n")
    (tmp_path / "beside_ours.py").write_text("thing = 7\n")
    (tmp_path / "colorsys.py").write_text("raise RuntimeError\n")
    sys.modules.pop("colorsys", None)
    assert locate(f"{tmp_path}/located_for_a_test.py:thing", "task") == 7


def test_what_is_found_can_be_named_again_by_its_module(tmp_path):
    (tmp_path / "located_for_a_test.py").write_text("def thing(): ...\n")
    found = locate(f"{tmp_path}/located_for_a_test.py:thing", "task")
    assert getattr(sys.modules[found.__module__], found.__qualname__) is found


def test_a_file_that_is_called_like_another_module_is_refused(tmp_path):
    (tmp_path / "json.py").write_text("thing = 5\n")
    with pytest.raises(OptionError, match=r"task = '.*json.py:thing': another module is called json already"):
        locate(f"{tmp_path}/json.py:thing", "task")


def test_a_file_that_fails_may_be_tried_again(tmp_path):
    file = tmp_path / "located_for_a_test.py"
    file.write_text("1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        locate(f"{file}:thing", "task")
    file.write_text("thing = 'longer'\n")
    assert locate(f"{file}:thing", "task") == "longer"


@pytest.mark.parametrize("name", ["no_such.py:thing", "no/such.py:thing"])
def test_a_file_that_is_not_there_is_refused(name):
    with pytest.raises(OptionError, match=rf"task = '{name}': there is no file "):
        locate(name, "task")
