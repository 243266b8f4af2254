"""`pushcen report` and `export`: tables, figures, a page and models out of run folders."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pushcen.cli.options import Base, Columns, FigureName, Rows, TableForm, Target


def report(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs, or folders that hold some.")],
    out: Annotated[Path | None, typer.Option(help="The folder to write to [`report` in the first one].")] = None,
    formats: Annotated[str, typer.Option(help="Of figures, separated by commas: png, svg, pdf.")] = "png,svg",
    table: TableForm = None,
    theory: Annotated[bool, typer.Option("--theory", help="Only print the theorem's terms, as measured.")] = False,
    title: Annotated[str | None, typer.Option(help="The page's heading [what it compares].")] = None,
    rows: Rows = "",
    columns: Columns = "",
    base: Base = "",
    figure: FigureName = "",
    target: Target = None,
) -> None:
    """Make figures and one self-contained HTML page; runs that differ only in their seeds become one curve.

    With --rows, --columns, --base or --figure the table has methods (or any keys) down and points across, each cell
    the mean ± SD over seeds, and figures have a panel for each point.
    """
    from pushcen.analysis import ReportContent, comparison, cross, crossed_table, group, theory_table, write_report
    from pushcen.analysis.table import FORMATS
    from pushcen.checks import check_choice
    from pushcen.runs import find_runs

    runs = find_runs(folders)
    console = Console(highlight=False)
    if theory and table is None:
        for run in runs:
            console.print(theory_table(run).rich())
        return
    groups, targets = group(runs), list(dict.fromkeys(target or []))
    if rows or columns or base or figure:
        crossing = cross(runs, rows, columns)
        shown = ReportContent(crossed_table(crossing, base, figure, targets), groups, crossing.panels(), targets)
    else:
        shown = ReportContent(comparison(groups, targets=targets), groups, targets=targets)
    if table is not None:
        check_choice("table", table, FORMATS)
        typer.echo(shown.table.to(table))
        return
    console.print(shown.table.rich())
    where = out or folders[0] / "report"
    for file in write_report(shown, where, title, [form.strip() for form in formats.split(",")]):
        console.print(str(file), soft_wrap=True, markup=False)


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, or the state folder of a peer.")],
    best: Annotated[bool, typer.Option("--best", help="Of a peer: its best weights, not the newest.")] = False,
    client: Annotated[int | None, typer.Option(help="The model of this client.")] = None,
    reference: Annotated[bool, typer.Option("--reference", help="The de-biased reference model.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="The file [in the run's folder; of a peer, NAME.safetensors here].")
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="With what is frozen, too.")] = False,
) -> None:
    """Write a trained model as safetensors, and show how to load it.

    What is frozen stays out, and the file says by a fingerprint on which base it stands.
    """
    from pushcen.errors import OptionError

    if (run / "ledger.db").is_file():
        if whole:
            raise OptionError("--whole: a peer's state folder has no frozen part; its task function makes it")
        _of_peer(run, out, best)
        return
    if best:
        raise OptionError(f"--best: is for the state folder of a peer, which {run} is not; a run has --client N")
    from pushcen.runs.export import export_model

    if not run.is_dir():
        raise OptionError(f"{run}: is neither a run's folder nor the state folder of a peer")
    if (client is None) == (not reference):
        raise OptionError("export: either --client N or --reference says which model")
    file, example = export_model(run, client, out, whole=whole)
    console = Console(highlight=False)
    console.print(f"{file}", soft_wrap=True, markup=False)
    console.print(example, soft_wrap=True, markup=False)


def _of_peer(folder: Path, out: Path | None, best: bool) -> None:
    """Write the model of a peer on a real network, which may be running; never into its state folder."""
    from safetensors.torch import save_file

    from pushcen.errors import OptionError
    from pushcen.runtime.kept import base_of, best_weights, choose, weights_of
    from pushcen.runtime.state_folder import read_state

    file = out or Path(f"{Path(str(read_state(folder).get('name'))).name}.safetensors")
    if file.resolve().is_relative_to(folder.resolve()):
        raise OptionError(f"--out {file}: must not be in the state folder, which is the peer's alone")
    base, kept = base_of(folder), choose(folder, None) if best else None
    about = {"base": base} if base else {}
    if kept is not None:
        about |= {"events": str(kept.events), "score": str(kept.score)}
    save_file(best_weights(folder, kept) if kept else weights_of(folder), file, about or None)
    said, strict = (f"# without what is frozen: base {base}\n", ", strict=False") if base else ("", "")
    said += f"# the best by its own test data: {kept.score:g}, after {kept.events} compute events\n" if kept else ""
    load = f"model.load_state_dict(load_file({str(file)!r}){strict})"
    typer.echo(f"{file}\n{said}from safetensors.torch import load_file; {load}")
