"""A report in a folder: figures as files, the table in every form, and one page that holds it all."""

from collections.abc import Sequence
from pathlib import Path

from pushcen.analysis.figures import FIGURES
from pushcen.analysis.groups import Group
from pushcen.analysis.page import heading, page
from pushcen.analysis.tables import comparison
from pushcen.analysis.theory import theory_table
from pushcen.drawing import save


def write_report(
    groups: Sequence[Group], folder: Path, title: str | None = None, formats: Sequence[str] = ("png", "svg")
) -> list[Path]:
    """Write a report and return its files, the page first; with no title, it is called by what it compares."""
    files: list[Path] = []
    for name, (_, draw) in FIGURES.items():
        if (figure := draw(groups)) is not None:
            files += save(figure, folder, name, formats)
    folder.mkdir(parents=True, exist_ok=True)
    table = comparison(groups)
    for form, suffix in (("markdown", "md"), ("latex", "tex"), ("csv", "csv")):
        files.append(folder / f"table.{suffix}")
        files[-1].write_text(table.to(form) + ("" if form == "csv" else "\n"), "utf-8")
    theory = [theory_table(groups[0].runs[0])] if len(groups) == 1 else []
    whole = folder / "report.html"
    whole.write_text(page(groups, title or heading(groups), [table for table in theory if table.rows]), "utf-8")
    return [whole, *files]
