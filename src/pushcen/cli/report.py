"""`pushcen report`: tables, figures and a page from run folders."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def report(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Runs, or folders that hold some.")],
    out: Annotated[Path | None, typer.Option(help="Where to write it [the first folder, in `report`].")] = None,
    formats: Annotated[str, typer.Option(help="Of figures: png, svg, pdf, with commas between them.")] = "png,svg",
    table: Annotated[str | None, typer.Option(help="Only print the table: markdown, latex, csv or html.")] = None,
    theory: Annotated[bool, typer.Option("--theory", help="Print the theorem's terms, as they were measured.")] = False,
    title: Annotated[str | None, typer.Option(help="The page's heading [what it compares].")] = None,
) -> None:
    """Make figures and one self-contained HTML page from runs; those that differ only in their seeds become one."""
    from pushcen.analysis import comparison, group, theory_table, write_report
    from pushcen.analysis.table import FORMATS
    from pushcen.checks import check_choice
    from pushcen.runs import find_runs

    runs = find_runs(folders)
    groups = group(runs)
    console = Console(highlight=False)
    if table is not None:
        check_choice("table", table, FORMATS)
        typer.echo(comparison(groups).to(table))
        return
    if theory:
        for run in runs:
            console.print(theory_table(run).rich())
        return
    console.print(comparison(groups).rich())
    where = out or folders[0] / "report"
    for file in write_report(groups, where, title, [form.strip() for form in formats.split(",")]):
        console.print(str(file), soft_wrap=True, markup=False)
