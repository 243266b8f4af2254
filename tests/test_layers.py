"""docs/architecture.md names every file, and which package may import which; no class name twice; no file too long."""

import ast
import graphlib
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "pushcen"
FILES = sorted(path for path in SOURCE.rglob("*.py") if not path.name.endswith("_pb2.py"))
TOP = "pushcen"
TWICE = {"Reference", "Neighbours", "Standing", "Node", "Network", "Mailbox", "Task"}  # still to be renamed


def section(title):
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def read_table():
    """Return what each package or module may import, by the table in docs/architecture.md."""
    found = {}
    for who, what in re.findall(r"^\| (`.*?) \| (.*) \|$", section("Which package may import which"), re.MULTILINE):
        named = set(re.findall(r"`([\w.]+)`", what))
        allowed = set(found) - named if what.startswith("all of the above") else named
        for one in re.findall(r"`([\w.]+)`", who):
            found[one] = allowed - {one}
    return found


TABLE = read_table()


def module_of(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path) for path in FILES}


def unit(module):
    """Return the row of the table that a module belongs to: the longest name that it begins with."""
    inside = module.removeprefix("pushcen.") if module != TOP else TOP
    rows = [row for row in TABLE if inside == row or inside.startswith(f"{row}.")]
    return max(rows, key=len, default=inside)


def imports(path):
    """Yield every module of pushcen that a file imports, wherever in the file, with the line."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: a relative import"
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in MODULES else node.module for name in inner]
        else:
            continue
        yield from ((name, node.lineno) for name in names if name == TOP or name.startswith("pushcen."))


def test_the_table_has_every_package_and_no_other():
    there = {module.split(".")[1] if "." in module else TOP for module in MODULES}
    assert there == {row.split(".")[0] for row in TABLE}
    assert [row for row in TABLE if row != TOP and f"pushcen.{row}" not in MODULES] == []


@pytest.mark.parametrize("row", TABLE)
def test_a_package_imports_only_what_the_table_allows(row):
    against = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in FILES
        if unit(module_of(path)) == row
        for name, line in imports(path)
        if unit(name) not in {row, *TABLE[row]}
    ]
    assert against == []


def test_there_is_no_circle():
    graphlib.TopologicalSorter(TABLE).prepare()


def test_the_way_from_a_command_to_its_table_leads_through_files_that_exist():
    named = re.findall(r"[\w/]+\.py", section("From a command to its table"))
    assert len(named) > 10
    assert [name for name in named if not (SOURCE / name).is_file()] == []


def test_the_map_has_every_package():
    named = set(
        re.findall(
            r"^\| `src/pushcen/([\w]+)(?:/|\.py)` \|",
            (ROOT / "docs" / "architecture.md").read_text("utf-8"),
            re.MULTILINE,
        )
    )
    assert named == {module.split(".")[1] for module in MODULES if "." in module} - {"__main__"}


def test_the_map_names_every_file():
    maps = "".join((ROOT / "docs" / name).read_text("utf-8") for name in ("architecture.md", "simulation.md"))
    told = set(re.findall(r"\w+\.py", maps))
    assert {path.name for path in FILES} - {"__init__.py", "__main__.py"} - told == set()


def test_no_class_name_stands_twice():
    found = defaultdict(list)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(SOURCE)))
    assert {name: files for name, files in found.items() if len(files) > 1 and name not in TWICE} == {}


def test_no_file_is_longer_than_300_lines():
    lengths = {str(path.relative_to(SOURCE)): len(path.read_text("utf-8").splitlines()) for path in FILES}
    assert {name: lines for name, lines in lengths.items() if lines > 300} == {}
