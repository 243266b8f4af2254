"""The model of a peer, out of its state folder."""

from pathlib import Path

import torch

from pushcen.errors import LedgerError
from pushcen.runtime.state_folder import read_state, read_tensors

_PREFIX = "model."


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    """Give the weights that a peer has committed, as a state dict of its model; the peer may be running."""
    for _ in range(5):  # a running peer may replace the file between the two readings
        files = read_state(folder).get("files", {})
        if "weights" not in files:
            raise LedgerError(f"{folder}: has no weights yet")
        try:
            tensors = read_tensors(folder, {"weights": files["weights"]})
        except LedgerError:
            continue
        return {name.removeprefix(_PREFIX): tensor for name, tensor in tensors.items() if name.startswith(_PREFIX)}
    return read_tensors(folder, {"weights": read_state(folder)["files"]["weights"]})
