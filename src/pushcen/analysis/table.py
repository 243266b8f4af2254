"""A table, and the ways to show it: in a terminal, as Markdown, LaTeX, CSV and HTML."""

import csv
import html
import io
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich import box
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {"\\": r"\textbackslash{}", "±": r"$\pm$"}
_LABEL = 14  # a label longer than this is folded before a column goes below
_GAP = 2  # spaces between columns
_LINES = 4  # of a column's title
FORMATS = ("markdown", "latex", "csv", "html")


@dataclass(frozen=True)
class Column:
    """A column's title, and how its values are shown; one that shows numbers is flush right."""

    title: str
    show: Callable[[Any], str] = str
    left: bool = False


@dataclass(frozen=True)
class Table:
    r"""Values in rows. CSV has them as they are, everything else as people read them.

    >>> table = Table("Sizes", [Column("model", left=True), Column("MB", "{:.2f}".format)], [["LeNet", 1.6219]])
    >>> print(table.to("markdown"))
    | model | MB |
    |---|---:|
    | LeNet | 1.62 |
    >>> table.to("csv")
    'model,MB\nLeNet,1.6219\n'
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()

    def cells(self) -> list[list[str]]:
        """Return every value as it is shown."""
        return [[c.show(value) for c, value in zip(self.columns, row, strict=True)] for row in self.rows]

    def to(self, form: str) -> str:
        """Return the table as text: markdown, latex, csv or html."""
        return {"markdown": self._markdown, "latex": self._latex, "csv": self._csv, "html": self._html}[form]()

    def rich(self) -> "Fitted":
        """Return the table for a terminal."""
        return Fitted(self)

    def _markdown(self) -> str:
        lines = [[c.title for c in self.columns], *self.cells()]
        shown = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
        shown.insert(1, "|" + "|".join("---" if c.left else "---:" for c in self.columns) + "|")
        return "\n".join([*shown, *(["", *self.notes] if self.notes else [])])

    def _latex(self) -> str:
        def row(cells: Sequence[str]) -> str:
            return " & ".join("".join(_LATEX.get(letter, letter) for letter in cell) for cell in cells) + r" \\"

        aligned = "".join("l" if c.left else "r" for c in self.columns)
        return "\n".join(
            [
                rf"\begin{{tabular}}{{{aligned}}}",
                r"\toprule",
                row([c.title for c in self.columns]),
                r"\midrule",
                *map(row, self.cells()),
                r"\bottomrule",
                r"\end{tabular}",
                *(f"% {note}" for note in self.notes),
            ]
        )

    def _csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([c.title for c in self.columns])
        writer.writerows(["" if value is None else value for value in row] for row in self.rows)
        return text.getvalue()

    def _html(self) -> str:
        def row(cells: Sequence[str], tag: str) -> str:
            shown = (
                f"<{tag}{'' if column.left else ' class=number'}>{html.escape(cell)}</{tag}>"
                for column, cell in zip(self.columns, cells, strict=True)
            )
            return f"<tr>{''.join(shown)}</tr>"

        head = row([c.title for c in self.columns], "th")
        body = "\n".join(row(cells, "td") for cells in self.cells())
        notes = "".join(f"<p class=note>{html.escape(note)}</p>" for note in self.notes)
        return f"<div class=scroll><table><thead>{head}</thead><tbody>\n{body}\n</tbody></table></div>{notes}"


class Fitted:
    """A table as rich prints it: one that is too wide goes on below, its labels repeated, so that no number is cut."""

    def __init__(self, table: Table):
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
        column, shown = self.table.columns[at], [len(cells[at]) for cells in self.cells]
        longest = max(map(len, column.title.split(" ")))
        if column.left:
            return max(min(_LABEL, max(shown, default=0)), longest)
        least = max(longest, *shown) if shown else longest
        return next(w for w in range(least, least + 99) if len(textwrap.wrap(column.title, w)) <= _LINES)

    def _piece(self, columns: Sequence[int]) -> RichTable:
        piece = RichTable(
            box=box.SIMPLE_HEAD,
            padding=(0, _GAP - 1, 0, 0),
            show_header=any(column.title for column in self.table.columns),
            show_edge=False,
            pad_edge=False,
        )
        for at in columns:
            column = self.table.columns[at]
            title = column.title if column.left else "\n".join(textwrap.wrap(column.title, self._least(at)))
            piece.add_column(
                escape(title),
                justify="left" if column.left else "right",
                no_wrap=not column.left,
                overflow="fold",
                min_width=self._least(at),
            )
        for cells in self.cells:
            piece.add_row(*(escape(cells[at]) for at in columns))
        return piece
