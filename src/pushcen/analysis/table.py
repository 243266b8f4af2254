"""A table, and the ways to show it: in a terminal, as Markdown, LaTeX, CSV and HTML."""

import csv
import html
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pushcen.analysis.terminal import Fitted

_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {"\\": r"\textbackslash{}", "±": r"$\pm$"}
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
        from pushcen.analysis.terminal import Fitted

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
