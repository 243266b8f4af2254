"""`pushcen data ...`: who gets what when a data set is divided, and the columns of a table for all sites to share."""

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pushcen.cli.trace import trace

if TYPE_CHECKING:
    from pushcen.data import Columns, Summary

app = typer.Typer(help="Data sets, and how they are divided among clients; traces.", no_args_is_help=True)
app.command()(trace)
_FEW = 24  # clients that are listed one by one; of more, the first and last few
_ENDS = 5
Target = Annotated[str, typer.Option(help="Tables: what the label is, class or number [by what is in it].")]


@app.command()
def describe(
    source: Annotated[str, typer.Argument(metavar="DATA", help="A name, a file or a folder.")] = "digits",
    path: Annotated[Path | None, typer.Option(help="Where the files of the named data set are.")] = None,
    clients: Annotated[int | None, typer.Option(help="How many share it [10; natural: as the data says].")] = None,
    partition: Annotated[str, typer.Option(help="dirichlet, iid, shards, pathological or natural.")] = "dirichlet",
    alpha: Annotated[float | None, typer.Option(help="dirichlet: the smaller, the more skewed [0.4].")] = None,
    per_client: Annotated[int | None, typer.Option(help="shards, pathological: how many a client [2].")] = None,
    pool_test: Annotated[
        bool, typer.Option("--pool-test", help="Divide the global test set among clients, too.")
    ] = False,
    label: Annotated[str, typer.Option(help="Tables: the column to learn [label].")] = "",
    owner: Annotated[str, typer.Option(help="Tables: the column that says whose a row is: a client each.")] = "",
    target: Target = "",
    columns: Annotated[str, typer.Option(metavar="FILE", help="Tables: a file of `pushcen data columns`.")] = "",
    size: Annotated[int | None, typer.Option(help="Images: make those of any size squares of so many pixels.")] = None,
    min_samples: Annotated[int, typer.Option(help="The fewest samples a client may have.")] = 2,
    seed: Annotated[int, typer.Option(help="The same seed, the same division.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Draw a picture of it, too: svg, png or pdf.")] = None,
) -> None:
    """Show who gets what when a data set is divided: a table, and a picture."""
    from pushcen.data import draw, in_words, load, split, summarise
    from pushcen.tasks import DataOptions, TableTask

    console = Console(highlight=False)
    options = DataOptions(
        source, "", partition, alpha, per_client, pool_test=pool_test, min_samples=min_samples, label=label,
        owner=owner, target=target, columns=columns, size=size,
    )  # fmt: skip
    chosen = options.division()
    if clients is None and options.partition != "natural":
        clients = 10
    with Console(stderr=True).status(f"loading and dividing {source} ..."):
        if options.is_table:
            divided = TableTask(options, seed=seed).divided(clients)
        else:
            data = load(source, path=path, pool_test=pool_test, size=size)
            divided = split(data, clients, chosen, min_samples=min_samples, seed=seed)
        rows = summarise(divided)
        if out:
            draw(divided, out)
    data = divided.data
    shape = " x ".join(map(str, data.inputs.shape[1:]))
    tests = "no global test set" if data.test_labels is None else f"{len(data.test_labels):,} more as global test set"
    kind = f"{len(data.classes)} classes" if data.classes else "a number each, in tenths below"
    text = f"{data.name}: {len(data):,} samples of {shape}, {kind}; {tests}"
    console.print(text, soft_wrap=True, markup=False)
    if data.columns:
        console.print(printable(in_words(data.columns)), soft_wrap=True)
        console.print(_columns_table(data.columns))
    console.print(_table(rows, f"{len(divided)} clients, {chosen}, seed {seed}"))
    if out:
        console.print(f"picture: {out}", soft_wrap=True, markup=False)


@app.command("columns")
def write_columns(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="CSV or parquet files of one table, or columns files of several sites."),
    ],
    label: Annotated[str, typer.Option(help="The column to learn.")] = "",
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("columns.json"),
    owner: Annotated[str, typer.Option(help="The column that says whose a row is; it is nothing to learn from.")] = "",
    target: Target = "",
    category: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Numbers that are codes of categories; may be repeated.")
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A column to leave out; may be repeated.")
    ] = None,
) -> None:
    """Write the kinds, categories and scales of a table's columns, for all sites to share as `data.columns`.

    Files that it wrote itself, one at each site, become one for all: no site has to show its rows. Sites that encode
    their rows by different files are refused by each other.
    """
    from pushcen.checks import check_choice
    from pushcen.data import in_words, measure_files, of_one_class
    from pushcen.errors import OptionError

    if target:
        check_choice("target", target, ("class", "number"))
    if not out.absolute().parent.is_dir():
        raise OptionError(f"out = {str(out)!r}: there is no folder {str(out.parent)!r}")
    found = measure_files(files, label, owner=owner, target=target, categories=category or [], without=without or [])
    found.write(out)
    console = Console(highlight=False)
    console.print(_columns_table(found))
    console.print(printable(f"{found.rows:,} rows; {in_words(found)}"), soft_wrap=True)
    console.print(f"{out}: fingerprint {found.fingerprint}", soft_wrap=True, markup=False)
    if len(found.target.classes) == 1:
        console.print(printable(f"Not for training yet: {of_one_class(found.target)}"), soft_wrap=True)


def _columns_table(columns: "Columns") -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("column", "kind", "inputs", "what"):
        table.add_column(name, justify="right" if name == "inputs" else "left")
    for column in columns.columns:
        if column.categories:
            what = f"{len(column.categories):,}: {', '.join(column.categories[:6])}"
            what += ", ..." * (len(column.categories) > 6) + f"; embedded in {column.embedded}" * bool(column.embedded)
        else:
            what = f"mean {column.mean:.6g}, deviation {column.deviation:.6g}" if column.inputs else column.why
        what += "; missing values are told" if column.missing else ""
        table.add_row(printable(column.name), column.kind, str(column.inputs), printable(what))
    return table


def _table(rows: "list[Summary]", title: str) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD)
    for name in ("client", "samples", "training", "test", "classes", "largest class", "its share"):
        table.add_column(name, justify="left" if name == "largest class" else "right")
    if len(rows) > _FEW:
        *columns, shares = zip(*((r.samples, r.train, r.test, r.classes, r.largest_share) for r in rows), strict=True)
        for name, pick in (("fewest", min), ("median", median), ("most", max)):
            table.add_row(name, *(f"{pick(column):,.0f}" for column in columns), "", f"{pick(shares):.0%}")
        table.add_section()
    for at, row in enumerate(rows):
        if len(rows) > _FEW and _ENDS <= at < len(rows) - _ENDS:
            if at == _ENDS:
                table.add_row(*["..."] * 7)
            continue
        numbers = (row.client, row.samples, row.train, row.test, row.classes)
        table.add_row(*(f"{value:,}" for value in numbers), printable(row.largest), f"{row.largest_share:.0%}")
    return table


def printable(name: str) -> str:
    """Return a name from a file as harmless text: no markup, no control characters."""
    return escape("".join(letter if letter.isprintable() else "?" for letter in name))
