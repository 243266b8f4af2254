"""`pushcen export`: a trained model as a safetensors file."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, or the state folder of a peer.")],
    client: Annotated[int | None, typer.Option(help="This client's model.")] = None,
    reference: Annotated[bool, typer.Option("--reference", help="The de-biased reference model.")] = False,
    out: Annotated[Path | None, typer.Option(help="The file [in the run's folder].")] = None,
) -> None:
    """Write a trained model as safetensors, and show how to load it."""
    from pushcen.errors import OptionError

    if (run / "ledger.db").is_file():
        _of_peer(run, out)
        return
    from pushcen.runs.export import export_model

    if (client is None) == (not reference):
        raise OptionError("export: either --client N or --reference says which model")
    file, example = export_model(run, client, out)
    console = Console(highlight=False)
    console.print(f"{file}", soft_wrap=True, markup=False)
    console.print(example, soft_wrap=True, markup=False)


def _of_peer(folder: Path, out: Path | None) -> None:
    """Write the model of a peer on a real network, which may be running."""
    from safetensors.torch import save_file

    from pushcen.runtime.export import weights_of

    file = out or folder / "model.safetensors"
    save_file(weights_of(folder), file)
    typer.echo(f"{file}\nfrom safetensors.torch import load_file; model.load_state_dict(load_file({str(file)!r}))")
