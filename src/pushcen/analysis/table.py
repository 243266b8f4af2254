"""A table, and the ways to show it: in a terminal, as Markdown, LaTeX, CSV and HTML, as a data frame."""

import csv
import html
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pushcen.analysis.latex import latex
from pushcen.analysis.terminal import Fitted

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("markdown", "latex", "csv", "html")


@dataclass(frozen=True)
class Column:
    """A column's title, and how its values are shown; one that shows numbers is flush right.

    What is shown may have several lines; where `strong` says so of a value, the first one is bold.
    """

    title: str
    show: Callable[[Any], str] = str
    left: bool = False
    group: str = ""
    """What neighbours of the same group have in common: a heading above their titles."""
    strong: Callable[[Any], bool] = lambda _: False
    parts: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    """The numbers in a value, by the titles that they have as columns of their own, in CSV and data frames."""

    @property
    def whole(self) -> str:
        """The title with the group's, where there is no room for a heading above."""
        return f"{self.group}: {self.title}" if self.group and self.title else self.group or self.title


@dataclass(frozen=True)
class Table:
    r"""Values in rows. CSV and data frames have them as they are, everything else as people read them.

    >>> table = Table("Sizes", [Column("model", left=True), Column("MB", "{:.2f}".format)], [["LeNet", 1.6219]])
    >>> table
    | model | MB |
    |---|---:|
    | LeNet | 1.62 |
    >>> table.to("csv")
    'model,MB\nLeNet,1.6219\n'
    >>> table.frame().to_dict("list")
    {'model': ['LeNet'], 'MB': [1.6219]}
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()

    def cells(self) -> list[list[str]]:
        """Return every value as it is shown."""
        return [[c.show(value) for c, value in zip(self.columns, row, strict=True)] for row in self.rows]

    def strong(self) -> list[list[bool]]:
        """Return of every value whether it is bold."""
        return [[c.strong(value) for c, value in zip(self.columns, row, strict=True)] for row in self.rows]

    def headings(self) -> list[tuple[str, int]]:
        """Return the headings above the titles, and how many columns each is over; none, if no column has one."""
        spans = [(name, len(list(columns))) for name, columns in groupby(c.group for c in self.columns)]
        return spans if any(name for name, _ in spans) else []

    def to(self, form: str) -> str:
        """Return the table as text: markdown, latex, csv or html."""
        if form == "latex":
            return latex(self)
        return {"markdown": self._markdown, "csv": self._csv, "html": self._html}[form]()

    def __repr__(self) -> str:
        return self._markdown()

    def _repr_html_(self) -> str:
        return self._html()

    def rich(self) -> Fitted:
        """Return the table for a terminal."""
        return Fitted(self)

    def save(self, folder: Path, name: str) -> list[Path]:
        """Write the table as Markdown, LaTeX and CSV into a folder; return the files."""
        files = []
        for form, suffix in (("markdown", "md"), ("latex", "tex"), ("csv", "csv")):
            files.append(folder / f"{name}.{suffix}")
            files[-1].write_text(self.to(form).rstrip("\n") + "\n", "utf-8")
        return files

    def frame(self) -> "pd.DataFrame":
        """Return the values as a data frame, several numbers of one value in columns of their own."""
        import pandas as pd

        titles, rows = self._apart()
        return pd.DataFrame(rows, columns=pd.Index(titles))

    def _apart(self) -> tuple[list[str], list[list[Any]]]:
        """Return titles and rows in which every number is a value of its own."""
        titles = [title for c in self.columns for title in (c.parts or [c.whole])]
        rows = [
            [part(value) for c, value in zip(self.columns, row, strict=True) for part in (c.parts or _WHOLE).values()]
            for row in self.rows
        ]
        return titles, rows

    def _markdown(self) -> str:
        marked = [
            [_first(cell, "**", "**") if strong else cell for cell, strong in zip(cells, own, strict=True)]
            for cells, own in zip(self.cells(), self.strong(), strict=True)
        ]
        lines = [[c.whole for c in self.columns], *marked]
        shown = ["| " + " | ".join(map(_markdown_cell, line)) + " |" for line in lines]
        shown.insert(1, "|" + "|".join("---" if c.left else "---:" for c in self.columns) + "|")
        return "\n".join([*shown, *(["", *self.notes] if self.notes else [])])

    def _csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        titles, rows = self._apart()
        writer.writerow(titles)
        writer.writerows(["" if value is None else value for value in row] for row in rows)
        return text.getvalue()

    def _html(self) -> str:
        def row(cells: Sequence[str], tag: str) -> str:
            shown = (
                f"<{tag}{'' if column.left else ' class=number'}>{cell}</{tag}>"
                for column, cell in zip(self.columns, cells, strict=True)
            )
            return f"<tr>{''.join(shown)}</tr>"

        above = "".join(f"<th colspan={span}>{html.escape(name)}</th>" for name, span in self.headings())
        head = (f"<tr>{above}</tr>" if above else "") + row([html.escape(c.title) for c in self.columns], "th")
        body = "\n".join(
            row([_html_cell(cell, mark) for cell, mark in zip(cells, strong, strict=True)], "td")
            for cells, strong in zip(self.cells(), self.strong(), strict=True)
        )
        notes = "".join(f"<p class=note>{html.escape(note)}</p>" for note in self.notes)
        return f"<div class=scroll><table><thead>{head}</thead><tbody>\n{body}\n</tbody></table></div>{notes}"


_WHOLE: dict[str, Callable[[Any], Any]] = {"": lambda value: value}


def _first(cell: str, before: str, after: str) -> str:
    """Return a cell with marks around its first line."""
    first, newline, others = cell.partition("\n")
    return f"{before}{first}{after}{newline}{others}"


def _markdown_cell(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", "<br>")


def _html_cell(cell: str, strong: bool) -> str:
    shown = html.escape(cell)
    return (_first(shown, "<strong>", "</strong>") if strong else shown).replace("\n", "<br>")
