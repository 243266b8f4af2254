import io

import pytest
from rich.console import Console

from pushcen.analysis.table import Column, Table
from pushcen.analysis.units import size

NUMBERS = [Column(f"number {at}", "{:,.3f}".format) for at in range(9)]
TABLE = Table(
    "Wide",
    [Column("alpha"), Column("row", left=True), *NUMBERS],
    [[0.1, "training alone", *(1000.5 + at for at in range(9))], [0.4, "dense", *(2000.5 + at for at in range(9))]],
    ["a note that is rather longer than a narrow terminal is wide, so that it has to be broken somewhere"],
)


def printed(table, width):
    console = Console(file=io.StringIO(), width=width)
    console.print(table.rich())
    return console.file.getvalue()


@pytest.mark.parametrize("width", [32, 40, 80, 120, 200])
def test_no_number_is_cut_however_narrow_the_terminal(width):
    text = printed(TABLE, width)
    assert max(map(len, text.splitlines())) <= width
    for row in TABLE.cells():
        for cell in row[2:]:
            assert cell in text.split()
    assert TABLE.notes[0].split() == text.split()[-len(TABLE.notes[0].split()) :]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_number_touches_another(width):
    columns = [Column("row", left=True), Column("a push", size), Column("sent in all", size), Column("seeds")]
    sizes = Table("", columns, [["one", 1_621_000, 72_900_000_000, 12345], ["two", 10_300_000, 171_000_000, 2]])
    for table in (TABLE, sizes):
        text = printed(table, width)
        numbers = [cell for row in table.cells() for cell in row[2 if table is TABLE else 1 :]]
        assert all(f"  {cell}  " in f"{text} ".replace("\n", "  ") for cell in numbers)


def test_a_title_is_at_most_four_lines():
    title = "its limit = ceil ( log2 k ) / B, or what is left of it"
    lines = printed(Table("", [Column("row", left=True), Column(title)], [["a", 1]]), 60).splitlines()
    assert [("─" in line) for line in lines].index(True) <= 4
    assert "".join(line[4:] for line in lines[:4]).replace(" ", "") == title.replace(" ", "")


def test_what_goes_below_has_its_labels_again():
    assert printed(TABLE, 200).count("training alone") == 1
    lines = printed(TABLE, 80).splitlines()
    assert sum("training alone" in line for line in lines) == 2
    below = next(line for line in reversed(lines) if "training alone" in line)
    assert below.split() == ["0.1", "training", "alone", "1,005.500", "1,006.500", "1,007.500", "1,008.500"]


def test_a_label_is_folded_before_numbers_go_below():
    label = "PushCen, the paper's rules, mean of squares"
    table = Table("", [Column("method", left=True), *NUMBERS[:6]], [[label, *range(6)]])
    lines = printed(table, 64).splitlines()
    assert sum("─" in line for line in lines) == 1
    assert "".join(line[:18] for line in lines[3:]).replace(" ", "") == label.replace(" ", "")
