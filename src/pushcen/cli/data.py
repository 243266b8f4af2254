"""`pushcen data ...`: who gets what when a data set is divided."""

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from pushcen.data import Summary

app = typer.Typer(help="Data sets, and how they are divided among clients.", no_args_is_help=True)
_FEW = 24  # clients that are listed one by one; of more, the first and last few
_ENDS = 5


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
    min_samples: Annotated[int, typer.Option(help="The fewest samples a client may have.")] = 2,
    seed: Annotated[int, typer.Option(help="The same seed, the same division.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Draw a picture of it, too: svg, png or pdf.")] = None,
) -> None:
    """Show who gets what when a data set is divided: a table, and a picture."""
    from pushcen.data import draw, load, partition_named, split, summarise

    console = Console(highlight=False)
    chosen = partition_named(partition, alpha=alpha, per_client=per_client)
    with Console(stderr=True).status(f"loading and dividing {source} ..."):
        data = load(source, path=path, pool_test=pool_test)
        if clients is None and partition != "natural":
            clients = 10
        divided = split(data, clients, chosen, min_samples=min_samples, seed=seed)
        rows = summarise(divided)
        if out:
            draw(divided, out)
    shape = " x ".join(map(str, data.inputs.shape[1:]))
    tests = "no global test set" if data.test_labels is None else f"{len(data.test_labels):,} more as global test set"
    text = f"{data.name}: {len(data):,} samples of {shape}, {len(data.classes)} classes; {tests}"
    console.print(text, soft_wrap=True, markup=False)
    console.print(_table(rows, f"{len(divided)} clients, {chosen}, seed {seed}"))
    if out:
        console.print(f"picture: {out}", soft_wrap=True, markup=False)


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
        table.add_row(*(f"{value:,}" for value in numbers), _printable(row.largest), f"{row.largest_share:.0%}")
    return table


def _printable(name: str) -> str:
    """Return a name from a file as harmless text: no markup, no control characters."""
    return escape("".join(letter if letter.isprintable() else "?" for letter in name))
