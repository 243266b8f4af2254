"""The models of a state folder, newest and best: taken out of it, or gone back to."""

from pathlib import Path

import torch

from pushcen.errors import LedgerError, OptionError
from pushcen.runtime.state_folder import StateFolder, read_state, read_tensors
from pushcen.runtime.track import BEST, KEY, Kept, Track

_MODEL = "model."  # what the names of a model's own tensors begin with


def best_of(folder: Path) -> list[Kept]:
    """List the best weights that a peer has kept, the best of all first."""
    return Track.of(read_state(folder).get(KEY)).kept


def best_weights(folder: Path, kept: Kept) -> dict[str, torch.Tensor]:
    """Return weights that a peer has kept, as a state dict of its model without what is frozen."""
    tensors = read_tensors(folder / BEST, {"weights": list(kept.file)})
    return {name.removeprefix(_MODEL): tensor for name, tensor in tensors.items() if name.startswith(_MODEL)}


def choose(folder: Path, events: int | None) -> Kept:
    """Return the best weights that were kept, or those after so many compute events."""
    kept = best_of(folder)
    if not kept:
        raise LedgerError(f"{folder}: has no best weights: none were evaluated, or runtime.keep_best = 0")
    found = [one for one in kept if events in (None, one.events)]
    if not found:
        known = ", ".join(str(one.events) for one in kept)
        raise OptionError(f"events = {events}: no weights were kept of then; there are those after {known}")
    return found[0]


def roll_back(folder: Path, events: int | None = None) -> Kept:
    """Set the weights of a stopped peer to the best that were kept. Nothing else changes: what it holds, has sent and
    credited, its epoch, sequence and boot go on, so that others notice nothing but a better model.
    """
    if not (folder / "ledger.db").is_file():
        raise LedgerError(f"{folder}: has no ledger.db; it is no state folder of a peer")
    store = StateFolder(folder)
    try:
        kept = choose(folder, events)
        back = {_MODEL + name: tensor for name, tensor in best_weights(folder, kept).items()}
        newest = read_tensors(folder, {"weights": store.load()["files"]["weights"]})
        if back.keys() != {name for name in newest if name.startswith(_MODEL)}:
            raise LedgerError(f"{folder}: {kept.file.name} has other tensors than the newest weights")
        store.commit({}, {"weights": store.write("weights", {**newest, **back})})
    finally:
        store.close()
    return kept
