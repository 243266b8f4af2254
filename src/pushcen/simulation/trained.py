"""The models that a run has trained, read from its folder."""

import os
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from pushcen.errors import RunError
from pushcen.learning.update import part_of
from pushcen.simulation import checkpoint
from pushcen.simulation.engine import Engine
from pushcen.simulation.folder import Folder, sync_folder
from pushcen.simulation.meters.reference import reference

REFERENCE = "reference.safetensors"


def load_client(folder: str | Path, client: int) -> dict[str, torch.Tensor]:
    """Read a client's whole model, as of the run's last checkpoint: a state dict.

    >>> load_client("nowhere", 0)
    Traceback (most recent call last):
    pushcen.errors.RunError: nowhere: there is no checkpoint in it
    """
    found = checkpoint.find(Path(folder))
    if found is None:
        raise RunError(f"{folder}: there is no checkpoint in it")
    saved = checkpoint.Saved(found)
    clients = len(saved.plain["nodes"])
    if not 0 <= client < clients:
        raise RunError(f"client {client}: must be from 0 to {clients - 1}")
    return part_of("model", saved.learner(client).tensors)


def load_reference(folder: str | Path) -> dict[str, torch.Tensor]:
    """Read a finished run's de-biased reference model: the shared tensors, by name. What stays home is not in it.

    >>> load_reference("nowhere")
    Traceback (most recent call last):
    pushcen.errors.RunError: nowhere: there is no reference model in it; a finished run has one
    """
    path = Path(folder) / REFERENCE
    if not path.is_file():
        raise RunError(f"{folder}: there is no reference model in it; a finished run has one")
    return load_file(path)


def write_reference(engine: Engine, folder: Folder) -> None:
    """Write the reference model of a run that is over."""
    ticket = reference(engine) if folder.path is not None else None
    if folder.path is None or ticket is None:
        return
    row, path = engine.runs.product(ticket), folder.path / REFERENCE
    slices = engine.nodes[0].facts.schema.slices()
    tensors = {entry.name: row[place].view(entry.shape).to(entry.dtype) for entry, place in slices}
    new = path.with_name(f"{REFERENCE}.new")
    save_file(tensors, new)
    with new.open("rb") as file:
        os.fsync(file.fileno())
    new.replace(path)
    sync_folder(folder.path)
