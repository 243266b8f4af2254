"""A report in a folder: figures as files, the table in every form, and one HTML page that needs no other file."""

import base64
import html
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pushcen.analysis.figures import accuracy, figures_of
from pushcen.analysis.groups import Group, group, measure_of
from pushcen.analysis.panels import Panels
from pushcen.analysis.run_tables import comparison, late_clients, theory_table
from pushcen.analysis.table import Table
from pushcen.config import flat
from pushcen.drawing import WIDTH, drawing, save
from pushcen.runs import Run
from pushcen.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CSS = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1c1c1c; max-width: 72rem; margin: 2.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.about, .note { color: #555; } .note { font-size: .85rem; margin: .4rem 0 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin-top: .6rem; }
th, td { padding: .25rem .6rem; text-align: left; white-space: nowrap; border-bottom: 1px solid #e4e4e4; }
th { border-bottom: 2px solid #888; font-weight: 600; } .number { text-align: right; }
figure { margin: 0; } img { max-width: 100%; height: auto; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(25rem, 1fr)); gap: 1.5rem; }
.wide { grid-column: 1 / -1; } .figures h2 { margin: 0 0 .4rem; } summary { cursor: pointer; margin-top: .6rem; }
@media print { body { margin: 0; max-width: none; } .figures figure { break-inside: avoid; } }
"""


@dataclass(frozen=True)
class ReportContent:
    """What a report shows: a table, and groups for its figures, some of them in a panel for each point."""

    table: Table
    groups: Sequence[Group]
    panels: Panels | None = None
    targets: Sequence[float] = ()

    def figures(self) -> "Iterator[tuple[str, str, Figure]]":
        """Yield the name, the title and the drawing of each figure that has something to show."""
        for name, (title, draw) in figures_of(measure_of(self.groups), self.targets, self.panels).items():
            if (figure := draw(self.groups)) is not None:
                yield name, title, figure


def write_report(
    report: ReportContent | Sequence[Group],
    folder: Path,
    title: str | None = None,
    formats: Sequence[str] = ("png", "svg"),
) -> list[Path]:
    """Write a report and return its files, the page first; with no title, the page is titled by what it compares.

    Groups alone are shown side by side.
    """
    if not isinstance(report, ReportContent):
        report = ReportContent(comparison(report), report)
    figures, groups = list(report.figures()), report.groups
    files = [file for name, _, figure in figures for file in save(figure, folder, name, formats)]
    folder.mkdir(parents=True, exist_ok=True)
    files += report.table.save(folder, "table")
    more = [theory_table(groups[0].runs[0]), late_clients(groups[0].runs[0])] if len(groups) == 1 else []
    whole = folder / "report.html"
    tables = [report.table, *(table for table in more if table.rows)]
    whole.write_text(page(groups, title or heading(groups), tables, figures), "utf-8")
    return [whole, *files]


def draw_accuracy(run: Run) -> None:
    """Draw the accuracy of a run into its folder, or whatever it is measured by, under its name."""
    if figure := accuracy(group([run])):
        save(figure, run.folder, run.measure.name)


def page(
    groups: Sequence[Group], title: str, tables: Sequence[Table], drawn: "Sequence[tuple[str, str, Figure]]"
) -> str:
    """Return the page of a run or a comparison, with its tables and figures."""
    shown = html.escape(title)
    figures = "\n".join(
        f"<figure id={name}{' class=wide' if figure.get_figwidth() > WIDTH else ''}><h2>{html.escape(heading)}</h2>"
        f"{as_image(figure, heading)}</figure>"
        for name, heading, figure in drawn
    )
    sections = "\n".join(
        f"<section>{f'<h2>{html.escape(t.title)}</h2>' if t.title else ''}{t.to('html')}</section>" for t in tables
    )
    configs = "\n".join(_config(group) for group in groups)
    return f"""<!DOCTYPE html>
<html lang=en><head><meta charset=utf-8><meta name=viewport content="width=device-width, initial-scale=1">
<title>{shown}</title><style>{_CSS}</style></head>
<body><h1>{shown}</h1>
<p class=about>{html.escape(_about(groups))}</p>
{sections}
<h2>Figures</h2>
<div class=figures>
{figures}
</div>
<h2>Configs</h2>
{configs}
<p class=note>Made by pushcen {__version__}.</p>
</body></html>
"""


def heading(groups: Sequence[Group]) -> str:
    """Return a title that says what a page compares: methods, or settings of one method."""
    settings: dict[str, list[str]] = {}
    for one in groups:
        settings.setdefault(one.title, []).append(one.label.removeprefix(one.title).removeprefix(", "))
    if len(settings) == 1 and len(groups) > 1:
        [(name, some)] = settings.items()
        what = f"{name}: {_and([one or 'as it is' for one in some])}"
    else:
        what = _and([f"{n} ({len(some)} settings)" if len(some) > 1 else n for n, some in settings.items()])
    tasks = {_task(group).rstrip("/").rpartition("/")[2] for group in groups}
    return f"{what} on {tasks.pop()}" if len(tasks) == 1 else what


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _task(group: Group) -> str:
    known = flat(group.runs[0].config)
    return str(known.get("task.function") or known.get("data.source", "data"))


def _about(groups: Sequence[Group]) -> str:
    known = flat(groups[0].runs[0].config)
    alpha = f", Dirichlet {known['data.alpha']}" if "data.alpha" in known else ""
    runs = sum(len(group.runs) for group in groups)
    return (
        f"{_task(groups[0])}{alpha}; {known.get('clients', '?')} clients; pseudo-time {known.get('horizon', '?')}; "
        f"{runs} run{'s' if runs > 1 else ''}"
    )


def as_image(figure: "Figure", text: str) -> str:
    """Return a figure as an image in HTML, with its data inside."""
    data = io.BytesIO()
    with drawing():
        figure.savefig(data, format="svg", metadata={"Date": None})
    inline = base64.b64encode(data.getvalue()).decode()
    return f'<img alt="{html.escape(text)}" src="data:image/svg+xml;base64,{inline}">'


def _config(group: Group) -> str:
    lines = "\n".join(f"{key} = {value!r}" for key, value in sorted(flat(group.runs[0].config).items()))
    return f"<details><summary>{html.escape(group.label)}</summary><pre>{html.escape(lines)}</pre></details>"
