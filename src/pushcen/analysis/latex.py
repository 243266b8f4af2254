r"""A table as LaTeX, in the style of the package booktabs, to be put between `\begin{table}` and `\end{table}`."""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pushcen.analysis.table import Table

_ESCAPED = {c: f"\\{c}" for c in "&%$#_{}"} | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_ESCAPED |= {"\\": r"\textbackslash{}", "±": r"$\pm$", "<": "$<$", ">": "$>$", "|": r"\textbar{}"}
_MINUS = re.compile(r"(?<![\w.)-])-(?=\d)")


def latex(table: "Table") -> str:
    r"""Return a `tabular`; what a cell has in several lines is in several rows. Notes are comments.

    >>> from pushcen.analysis.table import Column, Table
    >>> print(latex(Table("", [Column("a_b", left=True), Column("%")], [["x", "1.5 ± 0.2\n-0.5"]])))
    \begin{tabular}{lr}
    \toprule
    a\_b & \% \\
    \midrule
    x & 1.5 $\pm$ 0.2 \\
     & $-$0.5 \\
    \bottomrule
    \end{tabular}
    """
    lines = [rf"\begin{{tabular}}{{{''.join('l' if c.left else 'r' for c in table.columns)}}}", r"\toprule"]
    if headings := table.headings():
        lines += _above(headings)
    lines += [_row([escaped(c.title) for c in table.columns]), r"\midrule"]
    for cells, strong in zip(table.cells(), table.strong(), strict=True):
        lines += _rows(cells, strong)
    notes = (" ".join(note.split()) for note in table.notes)
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *(f"% {note}" for note in notes)])


def escaped(text: str) -> str:
    r"""Return text in which no letter has a meaning of its own to LaTeX, and minus signs are long enough.

    >>> escaped("50 % of {a}, -1 to < 3")
    '50 \\% of \\{a\\}, $-$1 to $<$ 3'
    """
    signs = _MINUS.sub("\0", text.replace("\0", ""))
    return "".join(_ESCAPED.get(letter, letter) for letter in signs).replace("\0", "$-$")


def _above(headings: Sequence[tuple[str, int]]) -> Iterator[str]:
    """Yield the row of headings above the titles, and the rules below them."""
    cells, rules, at = [], [], 1
    for name, span in headings:
        cells.append(rf"\multicolumn{{{span}}}{{c}}{{{escaped(name)}}}" if name else " & ".join([""] * span))
        rules += [rf"\cmidrule(lr){{{at}-{at + span - 1}}}"] if name else []
        at += span
    yield _row(cells)
    yield " ".join(rules)


def _rows(cells: Sequence[str], strong: Sequence[bool]) -> Iterator[str]:
    """Yield the rows of one row of a table: as many as its cells have lines."""
    for number, line in enumerate(zip_longest(*(cell.split("\n") for cell in cells), fillvalue="")):
        shown = [escaped(part) for part in line]
        if number == 0:
            shown = [rf"\textbf{{{part}}}" if bold else part for part, bold in zip(shown, strong, strict=True)]
        yield _row(shown)


def _row(cells: Sequence[str]) -> str:
    line = " & ".join(cells) + r" \\"
    return f"{{}}{line}" if line.startswith(("[", "*")) else line  # else it is an argument of what stands before it
