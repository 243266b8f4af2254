"""A table on a terminal. One that is too wide for it goes on below, its labels repeated: no number is ever cut."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from pushcen.analysis.table import Table

_LABEL = 14  # a label longer than this is folded before a column goes below


class Fitted:
    """What rich prints for a table."""

    def __init__(self, table: "Table"):
        self.table = table
        self.cells = table.cells()

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        """Yield the table, in as many pieces as the width asks for."""
        if self.table.title:
            yield Text(self.table.title, "table.title")
        for number, columns in enumerate(self._pieces(options.max_width)):
            if number:
                yield ""
            yield self._piece(columns)
        if self.table.notes:
            yield Text("\n".join(self.table.notes), "table.caption")

    def _pieces(self, width: int) -> Iterator[list[int]]:
        """Yield the columns of each piece: all labels, and as many others as there is room for."""
        columns = self.table.columns
        labels = list(range(1 + max((at for at, c in enumerate(columns) if c.left), default=-1)))
        piece = list(labels)
        for at in range(len(labels), len(columns)):
            if len(piece) > len(labels) and sum(self._least(c) + 1 for c in [*piece, at]) - 1 > width:
                yield piece
                piece = list(labels)
            piece.append(at)
        yield piece

    def _least(self, at: int) -> int:
        column, shown = self.table.columns[at], [cells[at] for cells in self.cells]
        if column.left:
            return max(min(_LABEL, max(map(len, shown), default=0)), *map(len, column.title.split(" ")))
        return max(map(len, [*column.title.split(" "), *shown]))

    def _piece(self, columns: Sequence[int]) -> RichTable:
        piece = RichTable(
            box=box.SIMPLE_HEAD,
            padding=0,
            show_header=any(column.title for column in self.table.columns),
            show_edge=False,
            pad_edge=False,
        )
        for at in columns:
            column = self.table.columns[at]
            title = escape(column.title if column.left else column.title.replace(" ", "\n"))
            piece.add_column(
                title,
                justify="left" if column.left else "right",
                no_wrap=not column.left,
                overflow="fold",
                min_width=self._least(at),
            )
        for cells in self.cells:
            piece.add_row(*(escape(cells[at]) for at in columns))
        return piece
