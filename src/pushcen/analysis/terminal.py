"""A table for a terminal: one that is too wide goes on below, and no number is cut."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from pushcen.analysis.table import Table

_LABEL = 14  # a label longer than this is folded before a column goes below
_GAP = 2  # spaces between columns
_LINES = 4  # of a column's title


class Fitted:
    """A table as rich prints it: one that is too wide goes on below, its labels repeated, so that no number is cut."""

    def __init__(self, table: "Table") -> None:
        self.table = table
        self.cells = table.cells()

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        """Yield the table, in as many pieces as the width requires."""
        if self.table.title:
            yield Text(self.table.title, "table.title")
        for number, columns in enumerate(self._pieces(options.max_width)):
            if number:
                yield ""
            yield self._piece(columns)
        if self.table.notes:
            yield Text("\n".join(self.table.notes), "table.caption")

    def _pieces(self, width: int) -> list[list[int]]:
        """Return the columns of each piece: all labels, and as many others as there is room for, evenly."""
        columns = self.table.columns
        labels = list(range(1 + max((at for at, c in enumerate(columns) if c.left), default=-1)))
        others = range(len(labels), len(columns))
        pieces = self._filled(labels, others, width, len(others))
        even = -(-len(others) // len(pieces))
        better = self._filled(labels, others, width, even)
        return better if len(better) == len(pieces) else pieces

    def _filled(self, labels: list[int], others: Sequence[int], width: int, most: int) -> list[list[int]]:
        pieces = [list(labels)]
        for at in others:
            there = len(pieces[-1]) - len(labels)
            if there and (there == most or sum(self._least(c) + _GAP for c in [*pieces[-1], at]) - _GAP > width):
                pieces.append(list(labels))
            pieces[-1].append(at)
        return pieces

    def _least(self, at: int) -> int:
        """Return how wide a column must be: no number and no word is cut, and a title has four lines at most."""
        column = self.table.columns[at]
        shown = [len(line) for cells in self.cells for line in cells[at].split("\n")]
        longest = max(map(len, column.whole.split(" ")))
        if column.left:
            return max(min(_LABEL, max(shown, default=0)), longest)
        least = max(longest, *shown) if shown else longest
        return next(w for w in range(least, least + 99) if len(textwrap.wrap(column.whole, w)) <= _LINES)

    def _piece(self, columns: Sequence[int]) -> RichTable:
        piece = RichTable(
            box=box.SIMPLE_HEAD,
            padding=(0, _GAP - 1, 0, 0),
            show_header=any(column.whole for column in self.table.columns),
            show_edge=False,
            pad_edge=False,
        )
        for at in columns:
            column = self.table.columns[at]
            title = column.whole if column.left else "\n".join(textwrap.wrap(column.whole, self._least(at)))
            piece.add_column(
                escape(title),
                justify="left" if column.left else "right",
                no_wrap=not column.left,
                overflow="fold",
                min_width=self._least(at),
            )
        for cells, strong in zip(self.cells, self.table.strong(), strict=True):
            piece.add_row(*(Text.assemble(*_parts(cells[at], strong[at])) for at in columns))
        return piece


def _parts(cell: str, strong: bool) -> list[tuple[str, str]]:
    """Return a cell's first line, which is bold if the cell is, and what is below it."""
    first, newline, others = cell.partition("\n")
    return [(first, "bold" if strong else ""), (newline + others, "")]
