"""The models of a state folder, newest and best: taken out of it, or gone back to."""

import contextlib
from pathlib import Path

import torch

from pushcen.errors import LedgerError, OptionError
from pushcen.methods import method_loaded
from pushcen.runtime.state_folder import StateFolder, read_state, read_tensors
from pushcen.runtime.track import KEY, Kept, Track

Tensors = dict[str, torch.Tensor]
_MODEL = "model."  # what the names of a model's own tensors begin with


def weights_of(folder: Path) -> Tensors:
    """Return the weights that a peer has committed, as a state dict of its model without what is frozen (`base_of`).

    The peer may be running.
    """
    for _ in range(5):  # a running peer may replace the file between the two readings
        files = read_state(folder).get("files", {})
        if "weights" not in files:
            raise LedgerError(f"{folder}: has no weights yet")
        try:
            return _exported(folder, _model(read_tensors(folder, {"weights": files["weights"]})))
        except LedgerError as error:
            missing = error
    raise missing


def base_of(folder: Path) -> str:
    """Return the fingerprint of the frozen part that a peer's weights stand on; empty if they are the whole model."""
    base: str = read_state(folder).get("learner", {}).get("frozen", "")
    return base


def best_of(folder: Path) -> list[Kept]:
    """List the best weights that a peer has kept, the best of all first."""
    return Track.of(read_state(folder).get(KEY)).kept


def best_weights(folder: Path, kept: Kept) -> Tensors:
    """Return weights that a peer has kept, as `weights_of` does the newest."""
    return _exported(folder, _kept_model(folder, kept))


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
        back = {_MODEL + name: tensor for name, tensor in _kept_model(folder, kept).items()}
        newest = read_tensors(folder, {"weights": store.load()["files"]["weights"]})
        if back.keys() != {name for name in newest if name.startswith(_MODEL)}:
            raise LedgerError(f"{folder}: {kept.file.name} has other tensors than the newest weights")
        store.commit({}, {"weights": store.write("weights", {**newest, **back})})
    finally:
        store.close()
    return kept


def _kept_model(folder: Path, kept: Kept) -> Tensors:
    return _model(read_tensors(folder, {"weights": list(kept.file)}))


def _model(tensors: Tensors) -> Tensors:
    return {name.removeprefix(_MODEL): tensor for name, tensor in tensors.items() if name.startswith(_MODEL)}


def _exported(folder: Path, found: Tensors) -> Tensors:
    """Return what a peer's method shares of its model with whoever asks for it."""
    method = method_loaded(str(read_state(folder).get("about", {}).get("method")))
    with contextlib.suppress(TypeError):  # one of the user's own that cannot be made without options
        return method().update().exported(found) if method else found
    return found
